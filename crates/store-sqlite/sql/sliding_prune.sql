DELETE FROM sliding WHERE until <= ?1
