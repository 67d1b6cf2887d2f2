SELECT call_id, seq FROM open WHERE owner = ?1 AND waits IS NULL AND call_id NOT IN (SELECT call_id FROM task WHERE until > ?3) ORDER BY seq LIMIT ?2
