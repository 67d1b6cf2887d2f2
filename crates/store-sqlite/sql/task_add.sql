INSERT OR REPLACE INTO task (call_id, name, until) SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM open WHERE call_id = ?1)
