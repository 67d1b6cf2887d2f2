INSERT INTO freeze (id, kind, name, created, person, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
