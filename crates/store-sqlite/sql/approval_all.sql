SELECT id, binding, state, call_id, grant_label, identity, client, server, session_id, tool, fingerprint, digest, members, class, rule, policy, policy_hash, question, answers, created, expires, ended, arguments
FROM approval
WHERE (created, id) > (?1, ?2) AND (?3 IS NULL OR grant_label = ?3)
ORDER BY created, id LIMIT ?4
