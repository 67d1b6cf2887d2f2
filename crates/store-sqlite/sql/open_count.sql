SELECT count(*) FROM open
