INSERT OR REPLACE INTO owner (id, since) VALUES (?1, ?2)
