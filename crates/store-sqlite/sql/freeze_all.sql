SELECT id, kind, name, created, person, reason FROM freeze ORDER BY id
