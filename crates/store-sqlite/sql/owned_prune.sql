DELETE FROM owned WHERE until <= ?1
