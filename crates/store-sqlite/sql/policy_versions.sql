SELECT name, version, document, created FROM policy WHERE name = ?1 ORDER BY version
