SELECT id FROM freeze WHERE kind = ?1 AND name IS ?2
