SELECT id, binding, state, call_id, grant_label, identity, client, server, session_id, tool, fingerprint, digest, members, class, rule, policy, policy_hash, question, answers, created, expires, ended, arguments, attempts
FROM approval
WHERE due <= ?1 AND due IS NOT NULL AND state = 'pending'
ORDER BY due LIMIT ?2
