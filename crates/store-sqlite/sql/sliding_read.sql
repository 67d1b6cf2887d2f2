SELECT at, amount FROM sliding WHERE key = ?1 AND at > ?2 ORDER BY at
