INSERT OR IGNORE INTO open (call_id, owner, seq) VALUES (?1, ?2, ?3)
