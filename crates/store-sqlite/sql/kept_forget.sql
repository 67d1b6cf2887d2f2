DELETE FROM kept WHERE space = ?1 AND key = ?2
