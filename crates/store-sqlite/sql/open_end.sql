DELETE FROM open WHERE call_id = ?1
