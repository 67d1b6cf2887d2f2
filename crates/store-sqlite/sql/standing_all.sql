SELECT id, approval, grant_label, server, tool, fingerprint, policy_hash, kept, person, reason, created, expires, session_id, question FROM standing ORDER BY created, id
