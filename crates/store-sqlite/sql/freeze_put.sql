INSERT OR REPLACE INTO freeze (id, kind, name, created) VALUES (?1, ?2, ?3, ?4)
