-- The grants take turns: one with thousands of pending approvals does not delay the notices of others.
SELECT id, binding, state, call_id, grant_label, identity, client, server, session_id, tool, fingerprint, digest, members, class, rule, policy, policy_hash, question, answers, created, expires, ended, arguments, attempts
FROM approval JOIN (
  SELECT id AS due_id, due AS at, row_number() OVER (PARTITION BY grant_label ORDER BY due, id) AS turn
  FROM approval
  WHERE due <= ?1 AND due IS NOT NULL AND state = 'pending'
  ORDER BY turn, at LIMIT ?2
) ON id = due_id
ORDER BY turn, at
