INSERT OR REPLACE INTO checkpoint (seq, hash, time, signature) VALUES (?1, ?2, ?3, ?4)
