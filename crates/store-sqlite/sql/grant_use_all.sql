SELECT id, at FROM grant_use ORDER BY id
