INSERT OR REPLACE INTO flight (key, call_id) VALUES (?1, ?2)
