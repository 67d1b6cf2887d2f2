SELECT id, kind, name, created FROM freeze ORDER BY id
