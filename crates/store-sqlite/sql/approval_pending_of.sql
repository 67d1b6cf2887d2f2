SELECT count(*), ifnull(sum(size), 0) FROM approval WHERE state = 'pending' AND grant_label = ?1
