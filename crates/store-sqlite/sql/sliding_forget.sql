DELETE FROM sliding WHERE key = ?1 AND at <= ?2
