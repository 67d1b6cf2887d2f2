SELECT count(*) FROM flight WHERE key = ?1
