INSERT INTO policy (name, version, document, created)
SELECT ?1, coalesce(max(version), 0) + 1, ?2, ?3 FROM policy WHERE name = ?1
