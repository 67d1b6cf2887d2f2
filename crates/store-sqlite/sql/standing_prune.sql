DELETE FROM standing WHERE expires <= ?1
