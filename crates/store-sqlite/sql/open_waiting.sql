SELECT call_id, seq FROM open WHERE waits <= ?1 ORDER BY seq LIMIT ?2
