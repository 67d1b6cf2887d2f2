SELECT id, since FROM owner WHERE id <> ?1
