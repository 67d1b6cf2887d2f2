SELECT count(*) FROM grants WHERE label = ?1 AND id <> ?2
