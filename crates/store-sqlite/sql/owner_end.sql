DELETE FROM owner WHERE id = ?1
