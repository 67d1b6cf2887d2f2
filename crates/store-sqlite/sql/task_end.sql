DELETE FROM task WHERE call_id = ?1
