INSERT OR REPLACE INTO seen (key, at, within) VALUES (?1, ?2, ?3)
