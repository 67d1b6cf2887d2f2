//! Keys of other MCP clients in a server entry, and what to write instead.

const URL: &str = "did you mean `url`?";
const TYPE: &str = "did you mean `type`? it is optional";
const HEADERS: &str = "did you mean `headers`?";
const POLICY: &str =
    "in toolgate a policy decides which tools may be called: see `policies:` and `grants:`";

pub(super) const KEYS: &[(&str, &str)] = &[
    ("serverUrl", URL),
    ("server_url", URL),
    ("httpUrl", URL),
    ("sseUrl", URL),
    ("endpoint", URL),
    ("transport", TYPE),
    ("transportType", TYPE),
    ("cmd", "did you mean `command`?"),
    ("arguments", "did you mean `args`?"),
    ("environment", "did you mean `env`?"),
    ("envFile", "write each variable under `env`, secrets as `env:NAME` or `file:PATH`"),
    ("env_vars", "write each variable under `env` as `NAME: env:NAME`"),
    ("workingDirectory", "did you mean `cwd`?"),
    ("working_directory", "did you mean `cwd`?"),
    ("http_headers", HEADERS),
    ("requestInit", HEADERS),
    ("env_http_headers", "write `headers: { NAME: \"env:VARIABLE\" }`"),
    ("bearer_token_env_var", "write `headers: { Authorization: \"Bearer ${VARIABLE}\" }`"),
    ("startup_timeout_sec", "did you mean `start_timeout: 60s`?"),
    ("startup_timeout_ms", "did you mean `start_timeout: 60s`?"),
    ("initTimeout", "did you mean `start_timeout: 60s`?"),
    ("tool_timeout_sec", "did you mean `timeout: 60s`?"),
    ("timeout_ms", "did you mean `timeout: 60s`?"),
    ("timeoutMs", "did you mean `timeout: 60s`?"),
    ("disabled", "to switch a server off, comment its entry out"),
    ("enabled", "to switch a server off, comment its entry out"),
    ("autoApprove", POLICY),
    ("alwaysAllow", POLICY),
    ("trust", POLICY),
    ("includeTools", POLICY),
    ("excludeTools", POLICY),
    ("enabled_tools", POLICY),
    ("disabled_tools", POLICY),
    ("disabledTools", POLICY),
    (
        "description",
        "write it as a comment, `# …`, or under a key of your own such as `x-description`",
    ),
    ("name", "the key of the entry is the name of the server"),
];
