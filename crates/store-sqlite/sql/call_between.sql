SELECT call_id FROM story WHERE call_id BETWEEN ?1 AND ?2
UNION SELECT call_id FROM audit WHERE seq > (SELECT told FROM state) AND call_id BETWEEN ?1 AND ?2
ORDER BY call_id LIMIT 2
