DELETE FROM standing WHERE id = ?1
