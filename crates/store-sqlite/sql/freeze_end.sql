DELETE FROM freeze WHERE id = ?1
