SELECT seq, v, time, kind, call_id, method, grant, identity, person, agent_session, client, via, server, session_id, tool, fingerprint, risk, decision, error_code, rule, policy, policy_version, policy_hash, argument_keys, arguments, counters, approval_id, outcome, effect, upstream_ms, total_ms, message, count, hash
FROM audit
