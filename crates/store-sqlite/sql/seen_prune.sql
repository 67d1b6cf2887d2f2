DELETE FROM seen WHERE at + within * 1000000 <= ?1
