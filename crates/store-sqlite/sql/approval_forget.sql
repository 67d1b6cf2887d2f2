UPDATE approval SET live = 0 WHERE id = ?1
