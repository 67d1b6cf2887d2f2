UPDATE state SET told = ?1 WHERE id = 1
