UPDATE open SET waits = NULL, owner = ?2 WHERE call_id = ?1 AND waits IS NOT NULL RETURNING seq
