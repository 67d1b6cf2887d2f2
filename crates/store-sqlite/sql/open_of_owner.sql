SELECT call_id, seq FROM open WHERE owner = ?1 AND waits IS NULL ORDER BY seq LIMIT ?2
