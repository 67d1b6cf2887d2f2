INSERT OR REPLACE INTO open (call_id, owner, seq, waits) VALUES (?1, ?2, ?3, ?4)
