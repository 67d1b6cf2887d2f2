INSERT INTO sliding (key, at, call_id, until, amount) VALUES (?1, ?2, ?3, ?4, ?5)
