SELECT open.call_id, open.seq, open.owner FROM task JOIN open USING (call_id) WHERE task.name = ?1 ORDER BY open.seq LIMIT ?2
