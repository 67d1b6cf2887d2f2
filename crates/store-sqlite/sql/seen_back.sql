DELETE FROM seen WHERE key = ?1
