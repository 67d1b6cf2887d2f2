//! What settings mean once they are read.

use std::path::Path;
use std::time::Duration;

use toolgate_config::{Config, Expanded, HttpFlavour, PolicySource, TokenHash, Transport};
use toolgate_policy::Class;
use toolgate_session::Idle;

use crate::support::{Fake, config, parse, problems};

#[test]
fn servers_keep_their_order_and_their_transport() {
    let config = config(
        "version: 1
servers:
  zulu: { command: z, args: ['${A}', 5, 'file:x.db'], env: { K: env:K, N: 8080 } }
  alpha: { type: sse, url: 'https://h.example/mcp?key=${KEY}', headers: { X-Key: file:k.txt } }
  mike: { url: 'http://[::1]:3000/mcp', tools: { t: { class: financial, timeout: 1h } } }",
    );
    let names: Vec<_> = config.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["zulu", "alpha", "mike"]);
    let [zulu, alpha, mike] = &config.servers[..] else { panic!("three servers") };
    let Transport::Stdio(child) = &zulu.transport else { panic!("a child") };
    let args: Vec<_> = child.args.iter().map(Expanded::expose).collect();
    assert_eq!(args, ["secret-of-A-0123456789abcdef", "5", "file:x.db"]);
    assert_eq!(child.env[0].1.expose(), "secret-of-K-0123456789abcdef");
    assert_eq!(child.env[1].1.expose(), "8080");
    assert_eq!(child.cwd, Path::new("conf"));
    assert!(!child.shared);
    let Transport::Http(remote) = &alpha.transport else { panic!("on the network") };
    assert_eq!(remote.url.expose(), "https://h.example/mcp?key=secret-of-KEY-0123456789abcdef");
    assert_eq!(remote.url.to_string(), "https://h.example/mcp?***");
    assert_eq!(remote.headers[0].1.expose(), "secret-in-k.txt-0123456789abcdef");
    assert_eq!(remote.flavour, HttpFlavour::Sse);
    assert_eq!(mike.tools[0].class, Some(Class::Financial));
    assert_eq!(mike.tools[0].timeout, Some(Duration::from_hours(1)));
}

#[test]
fn relative_paths_begin_at_the_folder_of_the_file() {
    let config = config(
        "version: 1
data: ./data
tls: { cert: c.pem, key: /abs/k.pem }
servers: { a: { command: x, cwd: work } }
policies: { p: { file: ../p.yaml } }",
    );
    assert_eq!(config.data.as_deref(), Some(Path::new("conf/./data")));
    let tls = config.tls.unwrap();
    assert_eq!(
        (tls.cert.as_path(), tls.key.as_path()),
        (Path::new("conf/c.pem"), Path::new("/abs/k.pem"))
    );
    assert_eq!(config.policies[0].source, PolicySource::File("conf/../p.yaml".into()));
    let Transport::Stdio(child) = &config.servers[0].transport else { panic!("a child") };
    assert_eq!(child.cwd, Path::new("conf/work"));
}

#[test]
fn an_inline_policy_keeps_its_text_and_its_place() {
    let text = "version: 1
policies:
  block:
    version: \"1\"   # kept as it is
    tools:
      close: { action: deny }
  flow: { version: \"1\", default: deny }
  next: { file: x }
";
    let config = config(text);
    let PolicySource::Inline(block) = &config.policies[0].source else { panic!("inline") };
    let wanted = text.lines().take(6).skip(3).collect::<Vec<_>>().join("\n");
    assert_eq!(block.trim_start_matches('\n').trim_end(), wanted);
    for (index, line) in text.lines().enumerate().take(6).skip(3) {
        assert_eq!(block.lines().nth(index), Some(line), "same line, same column");
    }
    let PolicySource::Inline(flow) = &config.policies[1].source else { panic!("inline") };
    assert_eq!(flow.trim(), "{ version: \"1\", default: deny }");
    let read: serde_json::Value = serde_saphyr::from_str(block).unwrap();
    assert_eq!(read["tools"]["close"]["action"], "deny");
}

#[test]
fn grants_and_people_hold_hashes_and_moments() {
    let config = config(
        "version: 1
grants:
  - { label: a, token: env:A, expires: 2027-01-01 }
  - { label: b, token_sha256: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad, servers: [] }
people: [{ name: p, token: '${env:P}', roles: [viewer] }]",
    );
    assert_eq!(config.grants[0].token, TokenHash::of("secret-of-A-0123456789abcdef"));
    assert_eq!(config.grants[0].expires.unwrap().to_string(), "2027-01-01T00:00:00Z");
    assert_eq!((config.grants[0].servers.as_ref(), config.grants[0].policy.as_ref()), (None, None));
    assert_eq!(config.grants[1].token, TokenHash::of("abc"));
    assert_eq!(config.grants[1].servers, Some(vec![]));
    assert_eq!(config.people[0].token, TokenHash::of("secret-of-P-0123456789abcdef"));
}

#[test]
fn kinds_inherit_from_the_section_and_server_from_its_own_defaults() {
    let sessions = config(
        "version: 1
sessions:
  timeout: 2m
  queue: 7
  idle_timeout_secs: 60
  tools: { t: { timeout: 1s, class: execute } }
  kinds:
    robot: { idle: shutdown, identifier_keys: off, tools: { t: { timeout: 2s, concurrency: 3 } } }
    calm: { idle_timeout_secs: 0 }",
    )
    .sessions
    .settings;
    let secs = Duration::from_secs;
    let robot = sessions.of_kind("robot");
    assert_eq!((robot.timeout, robot.queue, robot.idle), (secs(120), 7, Idle::Shutdown));
    assert!(!robot.identifier_keys);
    let tool = robot.tools["t"];
    assert_eq!((tool.timeout, tool.concurrency), (Some(secs(2)), Some(3)), "the kind's own value");
    assert_eq!(tool.class, Some(Class::Execute), "inherited");
    assert_eq!(sessions.of_kind("calm").idle_timeout, None);
    let other = sessions.of_kind("thin");
    assert_eq!(
        (other.timeout, other.idle_timeout, other.no_deadline),
        (secs(120), Some(secs(60)), false)
    );
    let server = sessions.of_kind("server");
    assert_eq!((server.timeout, server.reconnect_wait, server.queue), (secs(3600), secs(10), 7));
    assert!(server.no_deadline);
}

#[test]
fn sockets_get_at_least_the_grace_to_register() {
    let within = |text: &str| {
        config(&format!("version: 1\nsessions: {text}")).sessions.settings.register_within
    };
    assert_eq!(within("{}"), Duration::from_secs(30));
    assert_eq!(within("{ reconnection_grace_secs: 120 }"), Duration::from_mins(2));
    assert_eq!(within("{ register_within_secs: 45 }"), Duration::from_secs(45));
}

#[test]
fn a_reload_sees_what_changed() {
    let before =
        config("version: 1\nservers: { a: { command: x }, b: { command: y, env: { K: env:K } } }");
    let after =
        config("version: 1\nservers: { a: { command: x }, b: { command: y, env: { K: env:L } } }");
    assert_eq!(before.servers[0], after.servers[0]);
    assert_ne!(before.servers[1], after.servers[1], "a secret that changed is a change");
    assert_ne!(before, after);
}

#[test]
fn a_missing_file_is_a_problem() {
    let found = Config::load(Path::new("missing.yaml"), &Fake).unwrap_err();
    assert_eq!(
        found[0].to_string(),
        "missing.yaml: error[TG1001]: no such file\nhint: check the path given with `--config` or `TOOLGATE_CONFIG`"
    );
}

#[test]
fn large_and_endless_files_are_refused_quickly() {
    let comment = format!("version: 1\n# {}\n", "x".repeat(10 * 1024 * 1024));
    assert_eq!(problems(&comment)[0].code, "TG1002");
    let lines = (0..40_000).map(|n| format!("k{n}: 1")).collect::<Vec<_>>().join("\n");
    assert_eq!(problems(&lines).len(), 200, "reports are bounded");
    let one_line = format!("version: 1\nx-a: [{}]\ntypo: 1", "\"0123456789\", ".repeat(20_000));
    assert_eq!(problems(&one_line).len(), 1);
    let broken = format!("version: 1\nx-a: [{}]]", "\"0123456789\", ".repeat(20_000));
    assert!(problems(&broken)[0].to_string().len() < 1000, "long lines are cut");
    assert!(parse(&format!("version: 1\n{}: 1", "k".repeat(1000))).is_err());
}
