UPDATE policy SET removed = 1
WHERE name = ?1 AND removed = 0 AND version = (SELECT max(version) FROM policy WHERE name = ?1)
