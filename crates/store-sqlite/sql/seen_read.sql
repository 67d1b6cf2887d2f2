SELECT at, within FROM seen WHERE key = ?1
