SELECT seq, kind, call_id, outcome FROM audit WHERE seq >= ?1 AND call_id IS NOT NULL ORDER BY seq
