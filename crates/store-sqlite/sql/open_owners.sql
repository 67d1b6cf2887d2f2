SELECT DISTINCT owner FROM open WHERE owner <> ?1 AND waits IS NULL
