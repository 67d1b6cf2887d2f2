//! The error codes that agents get in `_meta.error_code`, and rows in `error_code`.

/// One error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    /// The code.
    pub code: &'static str,
    /// When an agent gets it.
    pub when: &'static str,
    /// How the text begins; empty if it has no prefix.
    pub prefix: &'static str,
    /// What an agent should do.
    pub agent: &'static str,
    /// What an operator can do.
    pub operator: &'static str,
}

macro_rules! codes {
    ($($code:literal $prefix:literal $when:literal $agent:literal $operator:literal;)+) => {
        /// All codes.
        pub const ERROR_CODES: &[ErrorCode] = &[$(ErrorCode {
            code: $code,
            prefix: $prefix,
            when: $when,
            agent: $agent,
            operator: $operator,
        },)+];
    };
}

codes! {
    "policy_denied" "[POLICY DENIED]"
        "A rule of the policy denies or hides the call; `rule` names it: a JSON pointer into the policy, `(no policy)`, `(hidden)` or `(default deny)`."
        "Do not repeat the call. Change the arguments if the text names a condition, or choose another tool."
        "`toolgate policy explain --grant GRANT --tool TOOL --args JSON` shows every rule that took part.";
    "rate_limited" "[POLICY DENIED]"
        "A limit, `concurrency` or `loop` of the policy is spent; `retry_after_s` is the time until it is available again."
        "Wait `retry_after_s` seconds before the next attempt. If the rule is `/loop`, stop repeating the call."
        "`toolgate audit list --code rate_limited` shows which limit; raise it in the policy if it is too low.";
    "approval_required" "[APPROVAL REQUIRED]"
        "The policy holds the call for a person, and no answer came in time; `approval_id` and `expires_at` identify it. Nothing was sent."
        "Tell the user. Repeat the very same call once it is approved."
        "Answer the approval, or change the rule that holds the call.";
    "approval_denied" "[APPROVAL DENIED]"
        "A person denied the call; `reason` is the person's answer."
        "Do not repeat the call."
        "The audit names the person: `toolgate audit show CALL`.";
    "quarantined" "[QUARANTINED]"
        "The definition of the tool is not approved, or has changed since it was approved."
        "Do not repeat the call. Tell the user that the tool waits for an approval."
        "Compare the definitions and approve the new one, or remove the server.";
    "frozen" "[FROZEN]"
        "A person froze the grant, the server, the session or everything."
        "Stop calling. Tell the user that an operator stopped this."
        "`toolgate freeze list` shows who and why; `toolgate unfreeze ID` ends it.";
    "invalid_arguments" "[INVALID ARGUMENTS]"
        "The arguments do not match the schema of the tool, or a session selector is not valid. Nothing was sent."
        "Correct the arguments that the text names and call again."
        "Sessions are always checked against the published schema; servers with `validate: true`.";
    "unknown_tool" ""
        "There is no such tool for this grant. The answer is the same whether it does not exist or is not granted."
        "List the tools again and use a listed name."
        "`toolgate tool list --as GRANT` shows what the grant sees.";
    "no_live_session" ""
        "The tool is known, but no connected session serves it; `kind` and `config_id` name what is missing."
        "Tell the user which program must be started. Try again once it is connected."
        "`toolgate session list` shows connected sessions.";
    "session_id_required" ""
        "Several sessions serve the tool and the call does not select one; `candidates` lists them."
        "Choose one of `candidates` and pass its `session_id`. Do not guess: ask the user if unsure."
        "Limit the grant to one session with `sessions`, if it should reach only one.";
    "unknown_session" ""
        "The selector matches no session that this grant may reach; `candidates` lists those that serve the tool."
        "Use a `session_id` of `candidates`."
        "`toolgate session list` shows all sessions; `sessions` of the grant limits its reach.";
    "session_mismatch" ""
        "The selected session does not publish the tool."
        "Choose another session, or another tool."
        "`toolgate session list` shows how many tools each session publishes.";
    "session_gone" ""
        "The selected session is disconnected, or disconnected during the call; `effect` states whether the tool may have run."
        "With effect `not_started` try again later. With effect `unknown` check the result before repeating."
        "Restart the program, or check its network.";
    "session_busy" ""
        "The queue of the session is full; `retry_after_s` is an estimate. Nothing was sent."
        "Wait `retry_after_s` seconds."
        "`sessions.queue` sets the length of the queue.";
    "cancelled" ""
        "The call was cancelled before it was sent or while it ran; `effect` states whether the tool may have run."
        "Nothing, unless the result is still needed."
        "`toolgate audit show CALL` shows when it was cancelled.";
    "upstream_unavailable" "[UPSTREAM]"
        "The server cannot be reached or started. Nothing was sent."
        "Try again later; the text states when the next attempt is useful."
        "`toolgate server test NAME` shows the cause.";
    "upstream_timeout" "[UPSTREAM]"
        "The server or session did not answer in time; with effect `not_started` the call never left the queue."
        "With effect `unknown` the tool may have run: check before repeating."
        "Raise `timeout` of the server or tool if calls need longer.";
    "outcome_unknown" "[UPSTREAM]"
        "The server died or the connection broke during the call, so it is not known whether the tool ran."
        "Check whether the tool ran before repeating the call."
        "`toolgate audit show CALL` and the log of the server show what happened.";
    "not_audited" "[NOT SENT]"
        "The audit cannot be written, so nothing was sent."
        "Tell the user; repeating helps only once the operator fixed the disk."
        "Check disk space and permissions of the data folder; `toolgate doctor` checks both.";
}
