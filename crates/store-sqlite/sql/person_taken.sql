SELECT count(*) FROM people WHERE name = ?1 AND id <> ?2
