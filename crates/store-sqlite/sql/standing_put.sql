INSERT INTO standing (id, approval, grant_label, server, tool, fingerprint, policy_hash, kept, person, reason, created, expires, session_id, question)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
