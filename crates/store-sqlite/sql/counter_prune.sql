DELETE FROM counter WHERE until <= ?1
