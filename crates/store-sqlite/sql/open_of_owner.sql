SELECT call_id, seq FROM open WHERE owner = ?1 ORDER BY seq LIMIT ?2
