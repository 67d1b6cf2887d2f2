UPDATE open SET waits = ?2 WHERE call_id = ?1
