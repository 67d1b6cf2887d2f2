INSERT INTO approval (id, binding, state, live, call_id, grant_label, identity, client, server, session_id, tool, fingerprint, digest, members, class, rule, policy, policy_hash, question, answers, created, expires, ended, due, size, arguments)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?21, ?24, ?25)
ON CONFLICT (id) DO UPDATE SET state = ?3, live = ?4, answers = ?20, expires = ?22, ended = ?23, size = ?24, arguments = ?25
