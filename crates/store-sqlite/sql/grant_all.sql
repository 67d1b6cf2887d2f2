SELECT id, label, token, identity, groups, servers, sessions, policy, created, expires, last_use, revoked FROM grants ORDER BY id
