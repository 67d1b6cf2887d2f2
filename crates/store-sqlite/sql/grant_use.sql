INSERT INTO grant_use (id, at) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET at = max(at, ?2)
