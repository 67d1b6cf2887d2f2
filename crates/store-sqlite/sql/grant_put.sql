INSERT OR REPLACE INTO grants (id, label, token, identity, groups, servers, sessions, policy, created, expires, last_use, revoked)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
