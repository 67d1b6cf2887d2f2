//! Mistakes that people make in their first policies, and the messages that they read.

use toolgate_policy::{Class, Known, KnownTool, Policy};

/// A document after `version` and `default: deny`, and its problems: code, message, hint.
type Case = (&'static str, &'static [(&'static str, &'static str, &'static str)]);

const MISTAKES: [Case; 26] = [
    (
        "tools:\n  *_delete: { action: deny }\n",
        &[(
            "TG0003",
            "`*_delete` is a YAML alias, which the policy language does not have",
            "quote globs that begin with `*`: `\"*_delete\"`",
        )],
    ),
    (
        "hide: [*_admin]\n",
        &[(
            "TG0003",
            "`*_admin` is a YAML alias, which the policy language does not have",
            "quote globs that begin with `*`: `\"*_admin\"`",
        )],
    ),
    (
        "tools:\n  get_user: allow\n",
        &[("TG0006", "`/tools/get_user` is a string, not a mapping", "write `get_user: {}`")],
    ),
    (
        "tools:\n  get_user:\n",
        &[("TG0006", "`/tools/get_user` is null, not a mapping", "write `get_user: {}`")],
    ),
    (
        "tools:\n  delete_user: deny\n",
        &[(
            "TG0006",
            "`/tools/delete_user` is a string, not a mapping",
            "write `delete_user: { action: deny }`",
        )],
    ),
    (
        "tools: [get_user, \"list_*\"]\n",
        &[(
            "TG0006",
            "`tools` is a list, not a mapping",
            "write `tools: { get_user: {}, \"list_*\": {} }`",
        )],
    ),
    (
        "tools: { x: { approve: true } }\n",
        &[("TG0006", "`approve` is a boolean, not a mapping", "write `approve: {}`")],
    ),
    (
        "tools: { x: { concurrency: 2 } }\n",
        &[(
            "TG0006",
            "`concurrency` is a number, not a mapping",
            "write `concurrency: { max: 2 }`",
        )],
    ),
    (
        "tools: { x: { limits: { counter: calls, window: minute, max: 3 } } }\n",
        &[(
            "TG0006",
            "`limits` is a mapping, not a list",
            "write `limits: [{ counter: calls, window: minute, max: 30 }]`",
        )],
    ),
    (
        "hide: delete_account\n",
        &[("TG0006", "`hide` is a string, not a list", "write `hide: [delete_account]`")],
    ),
    (
        "loop: 20\n",
        &[(
            "TG0006",
            "`loop` is a number, not a mapping",
            "write `loop: { max: 20, window: minute }`",
        )],
    ),
    (
        "tools: { x: { require: [{ conditions: [{ path: args.a, op: exits, value: true }] }] } }\n",
        &[("TG0021", "unknown operator `exits`", "did you mean `exists`?")],
    ),
    (
        "tools: { x: { deny_if: { path: args.a, op: gt, value: 1 } } }\n",
        &[(
            "TG0006",
            "`deny_if` is a mapping, not a list",
            "write `deny_if: [{ conditions: [{ path: args.amount, op: gt, value: 100 }] }]`",
        )],
    ),
    (
        "tools: { x: { rate_limit: 30 } }\n",
        &[(
            "TG0015",
            "`rate_limit` is a number",
            "write `\"30/minute\"` or `{ max: 30, window: minute }`",
        )],
    ),
    (
        "tools: { x: { ratelimit: 30/minute } }\n",
        &[("TG0005", "unknown key `ratelimit` in `/tools/x`", "did you mean `rate_limit`?")],
    ),
    (
        "tools: { x: { action: block } }\n",
        &[(
            "TG0008",
            "`action` cannot be `block`",
            "write `allow`, `deny`, `hide`, `require_approval`",
        )],
    ),
    ("tool: { x: {} }\n", &[("TG0005", "unknown key `tool` in a policy", "did you mean `tools`?")]),
    (
        "classes: { dangerous: { action: deny } }\n",
        &[(
            "TG0043",
            "unknown risk class `dangerous`",
            "classes are `read`, `write`, `execute`, `destructive`, `financial`, `other`",
        )],
    ),
    (
        "tools: { x: {}, x: {} }\n",
        &[("TG0004", "duplicate key `x`", "the first one is on line 3: merge the two")],
    ),
    (
        "tools: { x: { deny_if: [{ conditions: [{ path: amount, op: gt, value: 1 }] }] } }\n",
        &[(
            "TG0020",
            "unknown path `amount`",
            "arguments are `args.NAME`; other paths are `grant.label`, `identity.name`, \
             `identity.groups`, `client.name`, `server`, `tool`, `risk.class`, `session.kind`, \
             `session.infobase_name`, `session.host_id`, `time.hour`, `time.weekday`",
        )],
    ),
    (
        "tools: { x: { deny_if: [{ conditions: [{ path: args.a, op: gt, value: \"1\" }] }] } }\n",
        &[("TG0022", "`gt` takes a number, not a string", "write a number")],
    ),
    (
        "tools: { x: { deny_if: [{ conditions: [{ path: \"args.a[*]\", op: eq, value: 1 }] }] } }\n",
        &[(
            "TG0020",
            "`[*]` does not say whether one or every element is meant",
            "write `[any]` or `[all]`",
        )],
    ),
    (
        "tools: { x: { unless_seen_within: 5 min } }\n",
        &[(
            "TG0014",
            "`unless_seen_within` cannot be `5 min`",
            "write `minute`, `hour`, `day`, a duration such as `90s`, `15m`, `2h`, `7d`, or a \
             number of seconds",
        )],
    ),
    (
        "tools: { \"{a,b}\": {} }\n",
        &[(
            "TG0018",
            "`{a,b}` is not a valid glob: `{` is not supported; write one entry for each name",
            "globs support `*`, `?`, `[abc]`, `[a-z]`, `[!a]` and `\\`",
        )],
    ),
    (
        "tools: { x: { yields: { job: result.id } } }\nall_tools: { action: deny }\n",
        &[(
            "TG0040",
            "`action` is not allowed in `/all_tools`",
            "write it under the tool it is about, in `tools`",
        )],
    ),
    (
        "timezone: Europe/Moskow\n",
        &[("TG0012", "unknown time zone `Europe/Moskow`", "did you mean `Europe/Moscow`?")],
    ),
];

#[test]
fn messages_show_the_text_to_write() {
    for (text, expected) in MISTAKES {
        let text = format!("version: \"1\"\ndefault: deny\n{text}");
        let loaded = Policy::load("p", &text, &Known::default());
        assert!(loaded.policy.is_none(), "{text}");
        let problems = loaded.problems.iter();
        let found: Vec<_> =
            problems.map(|p| (p.code.as_str(), p.message.as_str(), p.hint.as_str())).collect();
        assert_eq!(found, expected, "{text}");
    }
}

/// The texts that hints say to write are valid.
#[test]
fn what_a_hint_shows_can_be_written() {
    for text in [
        "tools: { get_user: {} }",
        "tools: { get_user: {}, \"list_*\": {} }",
        "tools: { x: { approve: {} } }",
        "tools: { x: { approve: { wait: 0s } } }",
        "tools: { x: { concurrency: { max: 2 } } }",
        "tools: { x: { limits: [{ counter: calls, window: minute, max: 30 }] } }",
        "hide: [delete_account]",
        "loop: { max: 20, window: minute }",
        "tools: { \"*_delete\": { action: deny } }",
        "classes: { destructive: { approve: {} } }",
        "all_tools: { rate_limit: 600/minute }",
        "list: all",
    ] {
        let text = format!("version: \"1\"\ndefault: deny\n{text}\n");
        let loaded = Policy::load("p", &text, &Known::default());
        assert!(loaded.problems.is_empty() && loaded.policy.is_some(), "{text}: {loaded:?}");
    }
}

#[test]
fn unknown_tools_are_reported_if_the_lists_are_known() {
    let tool = |server: &str, name: &str| KnownTool {
        server: server.into(),
        name: name.into(),
        class: Class::by_name(name),
    };
    let tools = vec![
        tool("files", "get_file"),
        tool("files", "delete_file"),
        tool("sessions", "close_form"),
        tool("toolgate", "my_permissions"),
    ];
    let cases: [(&str, &[&str], &[&str]); 12] = [
        ("tools: { get_file: {}, files/delete_file: {}, files__get_file: {} }", &[], &[]),
        ("tools: { close_form: {}, my_permissions: {} }", &[], &[]),
        (
            "tools: { get_fiel: {} }",
            &[],
            &["no known server has a tool `get_fiel`; did you mean `get_file`?"],
        ),
        (
            "tools: { get_fiel: {} }",
            &["slow"],
            &["no known server has a tool `get_fiel`; did you mean `get_file`?"],
        ),
        (
            "tools: { export: {} }",
            &[],
            &["no known server has a tool `export`; check the name with `toolgate tool list`"],
        ),
        ("tools: { export: {} }", &["slow"], &[]),
        ("tools: { slow/export: {} }", &["slow"], &[]),
        (
            "tools: { files/export: {} }",
            &["slow"],
            &[
                "no known server has a tool `files/export`; check the name with `toolgate tool list`",
            ],
        ),
        ("tools: { \"*\": { approve: {} } }", &[], &[]),
        (
            "hide: [delete_fil]",
            &[],
            &["no known server has a tool `delete_fil`; did you mean `delete_file`?"],
        ),
        (
            "tools: { \"*_file\": {} }",
            &[],
            &[
                "`*_file` allows destructive tools such as `delete_file`; name the tools one by one, or add `approve: {}`",
            ],
        ),
        ("tools: { \"get_*\": {} }", &[], &[]),
    ];
    for (text, unlisted, expected) in cases {
        let known = Known {
            servers: vec!["files".into(), "slow".into()],
            tools: Some(tools.clone()),
            unlisted: unlisted.iter().map(|name| (*name).into()).collect(),
        };
        let text = format!("version: \"1\"\ndefault: deny\n{text}\n");
        let loaded = Policy::load("p", &text, &known);
        let found: Vec<_> =
            loaded.problems.iter().map(|p| format!("{}; {}", p.message, p.hint)).collect();
        assert_eq!(found, expected, "{text}");
        assert!(loaded.policy.is_some(), "{text}");
    }
}
