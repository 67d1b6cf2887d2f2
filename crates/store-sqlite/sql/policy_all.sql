SELECT name, version, document, created FROM policy AS newest
WHERE removed = 0 AND version = (SELECT max(version) FROM policy WHERE name = newest.name)
ORDER BY name
