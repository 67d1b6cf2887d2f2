INSERT INTO span (first, owner) VALUES (?1, ?2)
