DELETE FROM approval WHERE ended <= ?1 AND live = 0
