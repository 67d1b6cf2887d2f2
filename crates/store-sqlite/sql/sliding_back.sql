DELETE FROM sliding WHERE key = ?1 AND at = ?2 AND call_id = ?3
