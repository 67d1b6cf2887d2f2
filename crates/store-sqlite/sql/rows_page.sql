SELECT seq, v, time, kind, call_id, method, grant, identity, person, agent_session, client, via, server, session_id, tool, fingerprint, risk, decision, error_code, rule, policy, policy_version, policy_hash, argument_keys, arguments, counters, approval_id, outcome, effect, upstream_ms, total_ms, message, count, hash
FROM audit
WHERE seq > ?1 AND (?2 IS NULL OR grant = ?2) AND (?3 IS NULL OR tool = ?3) AND (?4 IS NULL OR decision = ?4)
ORDER BY seq LIMIT ?5
