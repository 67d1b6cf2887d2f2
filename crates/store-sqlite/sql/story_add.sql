INSERT OR IGNORE INTO story (call_id, seq) SELECT call_id, seq FROM audit WHERE seq > ?1 AND call_id IS NOT NULL ORDER BY seq
