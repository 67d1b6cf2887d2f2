INSERT OR REPLACE INTO kept (space, key, json) VALUES (?1, ?2, ?3)
