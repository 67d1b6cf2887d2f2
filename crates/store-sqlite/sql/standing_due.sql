SELECT id, approval, grant_label, server, tool, fingerprint, policy_hash, kept, person, reason, created, expires, session_id, question FROM standing
WHERE expires <= ?1 ORDER BY expires LIMIT 1000
