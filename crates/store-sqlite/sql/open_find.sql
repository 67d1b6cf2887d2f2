SELECT count(*) FROM open WHERE call_id = ?1
