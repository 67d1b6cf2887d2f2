SELECT id, binding, state, call_id, grant_label, identity, client, server, session_id, tool, fingerprint, digest, members, class, rule, policy, policy_hash, question, answers, created, expires, ended, arguments
FROM approval
WHERE state = 'consumed' AND grant_label = ?1 AND server = ?2 AND tool = ?3 ORDER BY ended DESC LIMIT 1
