INSERT OR REPLACE INTO people (id, name, token, roles, groups, created, expires, revoked)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
