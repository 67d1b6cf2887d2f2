SELECT start, until, used FROM counter WHERE key = ?1
