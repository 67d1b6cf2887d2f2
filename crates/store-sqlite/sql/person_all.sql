SELECT id, name, token, roles, groups, created, expires, revoked FROM people ORDER BY id
