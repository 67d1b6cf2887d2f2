SELECT id, binding, state, call_id, grant_label, identity, client, server, session_id, tool, fingerprint, digest, members, class, rule, policy, policy_hash, question, answers, created, expires, ended, arguments
FROM approval
WHERE binding = ?1 AND live = 1
