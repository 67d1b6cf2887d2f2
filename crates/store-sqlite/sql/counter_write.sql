INSERT OR REPLACE INTO counter (key, start, until, used) VALUES (?1, ?2, ?3, ?4)
