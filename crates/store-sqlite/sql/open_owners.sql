SELECT DISTINCT owner FROM open WHERE owner <> ?1
