INSERT OR REPLACE INTO owned (server, kind, value, grants, identity, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
