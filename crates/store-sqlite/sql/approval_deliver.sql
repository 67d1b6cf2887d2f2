UPDATE approval SET attempts = ?2, due = ?3 WHERE id = ?1
