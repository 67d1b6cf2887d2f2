//! Held calls: asked, answered, sent once. What the server received decides.

#[path = "approvals/binding.rs"]
mod binding;
#[path = "approvals/in_band.rs"]
mod in_band;
#[path = "approvals/meanwhile.rs"]
mod meanwhile;
#[path = "approvals/processes.rs"]
mod processes;
#[path = "approvals/standing.rs"]
mod standing;
#[path = "approvals/watch.rs"]
mod watch;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, Home, eventually};
use crate::peer::{Peer, gate_with_peer};
use crate::program::{Card, Program};
use crate::sessionless::{Sessionless, last};
use crate::wire::Events;

const POLICY: &str = r"
policies:
  careful:
    version: '1'
    default: allow
    tools:
      echo: { approve: { wait: 60s, note: ask the desk } }
      pid: { approve: { wait: 0s } }
      mode: { approve: { wait: 0s, people: 2 } }
      env: { approve: { wait: 0s, approvers: [ops] } }
      ask: { approve: { wait: 60s } }
      tools_cache_reset: { approve: { wait: 60s } }
      mutter: { approve: { wait: 0s }, limits: [{ counter: mutters, window: day, max: 1 }] }
";

/// A gateway with a server, a person who administers it and an agent's token.
struct Desk {
    gate: Gate,
    peer: Peer,
    token: String,
}

impl Desk {
    fn new(config: &str) -> Self {
        Self::under(&format!("{POLICY}{config}"))
    }

    /// The same with a configuration that has the policy `careful`.
    fn under(config: &str) -> Self {
        let (gate, peer) = gate_with_peer(config, "listing", "instances: shared");
        let grant = r#"{"label":"g","policy":"careful","identity":"desk"}"#;
        let made = Api::admin(&gate).expect(201, "POST", "grants", grant);
        let token = made["token"].as_str().unwrap().to_owned();
        Self { gate, peer, token }
    }

    fn api(&self) -> Api {
        Api::admin(&self.gate)
    }

    fn agent(&self, path: &str) -> Agent {
        Agent::open_at_with(&self.gate, path, &self.token)
    }

    fn person(&self, name: &str, groups: &str) -> Api {
        let person = format!(r#"{{"name":"{name}","roles":["approver"],"groups":{groups}}}"#);
        let made = self.api().expect(201, "POST", "people", &person);
        Api::with(&self.gate, made["token"].as_str().unwrap())
    }

    /// The only pending approval.
    fn pending(&self) -> Value {
        eventually("an approval is pending", || {
            let listed = self.api().get("approvals?state=pending");
            let items = listed["items"].as_array().unwrap();
            assert!(items.len() <= 1, "{listed}");
            items.first().cloned()
        })
    }

    fn answer(&self, approval: &Value, answer: &str, body: &str) -> Value {
        let id = approval["id"].as_str().unwrap();
        self.api().expect(200, "POST", &format!("approvals/{id}/{answer}"), body)
    }

    /// The calls of a tool that the server received.
    fn received(&self, tool: &str) -> usize {
        let received = self.peer.received();
        received.iter().filter(|message| message["params"]["name"] == tool).count()
    }

    /// What the audit has of an approval: kind and message of each row.
    fn story(&self, approval: &Value) -> Vec<String> {
        let rows = self.api().get("audit?limit=1000");
        let rows = rows["items"].as_array().unwrap().iter();
        let own = rows.filter(|row| row["approval_id"] == approval["id"]);
        own.map(|row| match (row["kind"].as_str().unwrap(), row["message"].as_str()) {
            (kind @ "approval", Some(message)) => format!("{kind}: {message}"),
            (kind, _) => kind.to_owned(),
        })
        .collect()
    }
}

fn code(result: &Value) -> &str {
    result["_meta"]["error_code"].as_str().unwrap_or("sent")
}

fn calling(agent: Agent, tool: &'static str, arguments: Value) -> JoinHandle<Value> {
    thread::spawn(move || agent.call(tool, &arguments))
}

/// On every endpoint and in both eras a call waits, is sent once when it is approved, and a second
/// one is held anew.
#[test]
fn a_held_call_is_sent_once_it_is_approved() {
    let desk = Desk::new("");
    let mut sent = 0;
    for (path, tool) in [("/mcp/peer", "echo"), ("/mcp", "peer__echo")] {
        let call = calling(desk.agent(path), tool, json!({"text": path}));
        let approval = desk.pending();
        assert_eq!((&approval["tool"], &approval["server"]), (&json!("echo"), &json!("peer")));
        assert_eq!(approval["arguments"], json!({"text": path}));
        assert_eq!(desk.received("echo"), sent);
        let approved = desk.answer(&approval, "approve", r#"{"reason":"fine"}"#);
        assert_eq!(approved["state"], "approved");
        assert_eq!(code(&call.join().unwrap()), "sent");
        sent += 1;
        assert_eq!(desk.received("echo"), sent);
        let story = desk.story(&approval);
        assert_eq!(story, ["held", "approval: approved: fine", "intent", "approval: consumed"]);
        let again = desk.api().ask(
            "POST",
            &format!("approvals/{}/approve", approval["id"].as_str().unwrap()),
            "{}",
        );
        assert_eq!(again.status, 409);
    }
    let client = Sessionless::new(&desk.gate, "/mcp/peer").with_token(&desk.token);
    let call =
        thread::spawn(move || client.call("echo", "", json!({"arguments": {"text": "new"}})));
    let approval = desk.pending();
    assert_eq!(desk.received("echo"), sent);
    desk.answer(&approval, "approve", "");
    let answer = last(&call.join().unwrap());
    assert_eq!(code(&answer["result"]), "sent", "{answer}");
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(desk.received("echo"), sent + 1);

    let mut program = Program::register(&desk.gate, &Card::new("u1", "ask"));
    let call = calling(desk.agent("/mcp/sessions"), "ask", json!({}));
    let approval = desk.pending();
    assert_eq!((&approval["server"], &approval["session_id"]), (&json!("sessions"), &json!("u1")));
    desk.answer(&approval, "approve", "");
    program.serve("yes");
    assert_eq!(code(&call.join().unwrap()), "sent");
}

/// The agent receives progress, is told the person's reason, and nothing is sent.
#[test]
fn a_denial_reaches_the_agent() {
    let desk = Desk::new("");
    let agent = desk.agent("/mcp/peer");
    let mut events = Events::of(agent.begin_call("echo", &json!({"progressToken": "t"})));
    let (_, progress) = events.message().unwrap();
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "t");
    let approval = desk.pending();
    desk.answer(&approval, "deny", r#"{"reason":"not on a Friday"}"#);
    // More progress may come before the answer.
    let answer = loop {
        let (_, message) = events.message().unwrap();
        if message.get("id").is_some() {
            break message;
        }
    };
    let result = &answer["result"];
    assert_eq!(code(result), "approval_denied");
    assert_eq!(result["_meta"]["reason"], "not on a Friday");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("[APPROVAL DENIED]") && text.contains("not on a Friday"), "{text}");
    assert_eq!(code(&agent.call("echo", &json!({}))), "approval_denied");
    assert_eq!(desk.received("echo"), 0);
    let ended = desk.api().get(&format!("approvals/{}", approval["id"].as_str().unwrap()));
    assert_eq!((&ended["state"], &ended["arguments"]), (&json!("denied"), &Value::Null));
}

/// Without waiting the agent gets the id; the repeat finds the approval, also after a restart.
#[test]
fn a_repeat_finds_its_approval_after_a_restart() {
    let mut desk = Desk::new("");
    let agent = desk.agent("/mcp/peer");
    let result = agent.call("pid", &json!({"a": 1}));
    assert_eq!(code(&result), "approval_required");
    let approval = desk.pending();
    let meta = &result["_meta"];
    assert_eq!(
        (&meta["approval_id"], &meta["rule"]),
        (&approval["id"], &json!("/tools/pid/approve"))
    );
    assert_eq!(meta["expires_at"], approval["expires"]);
    let page = meta["console_url"].as_str().unwrap();
    assert!(
        page.starts_with("http://") && page.ends_with(approval["id"].as_str().unwrap()),
        "{page}"
    );
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("[APPROVAL REQUIRED]"), "{text}");
    for words in ["Nothing was sent", "Repeat exactly the same call later", "Changed arguments"] {
        assert!(text.contains(words), "{text}");
    }
    assert_eq!(agent.call("pid", &json!({"a": 1}))["_meta"]["approval_id"], approval["id"]);
    assert_eq!(desk.gate.stop().0, Some(0));
    let home = desk.gate.into_home();
    let command = home.command(&["serve", "--ready-json"]);
    desk.gate = Gate::run(home, command).unwrap();
    assert_eq!(desk.pending()["id"], approval["id"]);
    desk.answer(&approval, "approve", "");
    let agent = desk.agent("/mcp/peer");
    assert_eq!(code(&agent.call("pid", &json!({"a": 2}))), "approval_required", "other arguments");
    assert_eq!(code(&agent.call("pid", &json!({"a": 1}))), "sent");
    let again = agent.call("pid", &json!({"a": 1}));
    assert_eq!(code(&again), "approval_required");
    assert_ne!(again["_meta"]["approval_id"], approval["id"]);
    assert_eq!(desk.received("pid"), 1);
}

/// Nothing is sent for an agent that has left; only a repeat can use the approval.
#[test]
fn nothing_is_sent_after_the_agent_hung_up() {
    let desk = Desk::new("");
    let agent = desk.agent("/mcp/peer");
    let connection = agent.begin_call("echo", &json!({}));
    let approval = desk.pending();
    drop(connection);
    // The row of the abandoned call.
    eventually("the call is given up", || {
        (desk.story(&approval).last().map(String::as_str) == Some("denied")).then_some(())
    });
    desk.answer(&approval, "approve", "");
    assert_eq!(desk.received("echo"), 0);
    assert_eq!(code(&agent.call("echo", &json!({}))), "sent");
    assert_eq!(desk.received("echo"), 1);
    // A cancelled call does not wait any more either.
    let mut events = Events::of(agent.begin_call("echo", &json!({"progressToken": 1})));
    events.message().unwrap();
    let approval = desk.pending();
    agent.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
    eventually("the call is given up", || {
        (desk.story(&approval).last().map(String::as_str) == Some("denied")).then_some(())
    });
    desk.answer(&approval, "approve", "");
    assert_eq!(desk.received("echo"), 1);
    // Nor does one of a built-in.
    let agent = desk.agent("/mcp");
    let mut events =
        Events::of(agent.begin_call("tools_cache_reset", &json!({"progressToken": 2})));
    events.message().unwrap();
    let approval = desk.pending();
    agent.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
    eventually("the call is given up", || {
        (desk.story(&approval).last().map(String::as_str) == Some("denied")).then_some(())
    });
    let approved = desk.answer(&approval, "approve", "");
    assert_eq!(approved["state"], "approved");
    assert!(!desk.story(&approval).contains(&"intent".to_owned()));
}

/// At a stop held calls are answered at once, and their approvals stay pending.
#[test]
fn a_stop_answers_held_calls() {
    let mut desk = Desk::new("");
    let call = calling(desk.agent("/mcp/peer"), "echo", json!({}));
    let approval = desk.pending();
    assert_eq!(desk.gate.stop().0, Some(0));
    assert_eq!(code(&call.join().unwrap()), "approval_required");
    let home = desk.gate.into_home();
    let command = home.command(&["serve", "--ready-json"]);
    desk.gate = Gate::run(home, command).unwrap();
    assert_eq!(desk.pending()["id"], approval["id"]);
}

/// Arguments of approvals that have ended are in no file of the data folder.
#[test]
fn the_arguments_of_ended_approvals_are_erased() {
    let mut desk = Desk::new("");
    let agent = desk.agent("/mcp/peer");
    for length in [1, 100, 10_000] {
        for answer in ["approve", "deny"] {
            let arguments = json!({"text": "the needle of 42 ".repeat(length), "n": answer});
            assert_eq!(code(&agent.call("pid", &arguments)), "approval_required");
            desk.answer(&desk.pending(), answer, "");
            let end = if answer == "approve" { "sent" } else { "approval_denied" };
            assert_eq!(code(&agent.call("pid", &arguments)), end);
        }
    }
    assert_eq!(desk.gate.stop().0, Some(0));
    assert!(!desk.gate.home.data_text().contains("needle"));
}

/// Roles, groups, four eyes and two people.
#[test]
fn only_those_who_are_asked_may_answer() {
    let desk = Desk::new("");
    let agent = desk.agent("/mcp/peer");
    let ops = desk.person("boss", r#"["ops"]"#);
    let own = desk.person("desk", r#"["ops"]"#);
    let other = desk.person("other", "[]");
    let path = |result: &Value| {
        format!("approvals/{}/approve", result["_meta"]["approval_id"].as_str().unwrap())
    };
    let of_ops = path(&agent.call("env", &json!({})));
    Api::with(&desk.gate, &desk.token).expect(401, "POST", &of_ops, "");
    for refused in [&other, &own, &desk.api()] {
        refused.expect(403, "POST", &of_ops, "");
    }
    assert_eq!(ops.expect(200, "POST", &of_ops, "")["state"], "approved");
    let of_two = path(&agent.call("mode", &json!({})));
    own.expect(403, "POST", &of_two, "");
    assert_eq!(ops.expect(200, "POST", &of_two, "")["state"], "pending");
    ops.expect(409, "POST", &of_two, "");
    assert_eq!(code(&agent.call("mode", &json!({}))), "approval_required");
    assert_eq!(other.expect(200, "POST", &of_two, "")["state"], "approved");
    // The answer of a person who is revoked before the call is sent is void.
    let people = desk.api().get("people");
    let id = people["items"].as_array().unwrap().iter().find(|it| it["name"] == "boss").unwrap();
    desk.api().expect(204, "DELETE", &format!("people/{}", id["id"].as_str().unwrap()), "");
    assert_eq!(code(&agent.call("mode", &json!({}))), "approval_required");
    assert_eq!(code(&agent.call("env", &json!({}))), "approval_required");
    assert_eq!((desk.received("mode"), desk.received("env")), (0, 0));
    assert_eq!(desk.api().expect(200, "POST", &of_two, "")["state"], "approved");
    assert_eq!(code(&agent.call("mode", &json!({}))), "sent");
}

/// Everything that an approval is bound to: if it changes, the call is held anew.
#[test]
fn a_changed_policy_or_grant_needs_another_approval() {
    let desk = Desk::new("");
    let agent = desk.agent("/mcp/peer");
    agent.call("pid", &json!({}));
    let approval = desk.pending();
    desk.answer(&approval, "approve", "");
    let second = r#"{"label":"second","policy":"careful"}"#;
    let made = desk.api().expect(201, "POST", "grants", second);
    let token = made["token"].as_str().unwrap();
    let other = Agent::open_with(&desk.gate, "peer", token);
    assert_eq!(code(&other.call("pid", &json!({}))), "approval_required", "another grant");
    let policy = "version: '1'\ndefault: allow\ntools: { pid: { approve: { wait: 0s } } }\n";
    desk.api().expect(200, "PUT", "policies/other", policy);
    let grants = desk.api().get("grants");
    let grants = grants["items"].as_array().unwrap();
    let id = grants.iter().find(|it| it["label"] == "g").unwrap()["id"].as_str().unwrap();
    desk.api().expect(200, "PATCH", &format!("grants/{id}"), r#"{"policy":"other"}"#);
    assert_eq!(code(&agent.call("pid", &json!({}))), "approval_required", "another policy");
    desk.api().expect(200, "PATCH", &format!("grants/{id}"), r#"{"policy":"careful"}"#);
    desk.api().expect(201, "POST", "freeze", r#"{"grant":"g"}"#);
    assert_eq!(code(&agent.call("pid", &json!({}))), "frozen");
    let frozen = desk.api().get("freeze");
    let id = frozen["items"][0]["id"].as_str().unwrap();
    desk.api().expect(204, "DELETE", &format!("freeze/{id}"), "");
    assert_eq!(code(&agent.call("pid", &json!({}))), "sent");
    assert_eq!(desk.received("pid"), 1);
}

/// The verbs answer, and show what was hashed with hidden characters drawn.
#[test]
fn the_verbs_list_show_and_answer() {
    let desk = Desk::new("");
    let agent = desk.agent("/mcp/peer");
    agent.call("mutter", &json!({"text": "a\u{202e}b\u{200b}c"}));
    let approval = desk.pending();
    let id = approval["id"].as_str().unwrap();
    let run = |words: &[&str]| {
        let output = desk.gate.home.run(words);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {printed}");
        (String::from_utf8(output.stdout).unwrap(), printed)
    };
    let listed: Value = serde_json::from_str(&run(&["approval", "list", "-o", "json"]).0).unwrap();
    assert_eq!(listed["items"][0]["id"], id);
    let (shown, _) = run(&["approval", "show", id]);
    for words in
        [r"a\u{202E}b\u{200B}c", "mutters: 0 -> 1 of 1", "/tools/mutter/approve", "an approver"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains('\u{202e}') && !shown.contains('\u{200b}'), "{shown}");
    let (_, done) = run(&["approval", "approve", id, "--reason", "fine"]);
    assert!(done.contains("is approved"), "{done}");
    assert_eq!(code(&agent.call("mutter", &json!({"text": "a\u{202e}b\u{200b}c"}))), "sent");
    assert_eq!(desk.gate.home.run(&["approval", "deny", id]).status.code(), Some(2));
    let (none, told) = run(&["approval", "list"]);
    assert!(none.is_empty() || !none.contains(id), "{none}");
    assert!(told.contains("no approval is pending"), "{told}");
    assert_eq!(code(&agent.call("mutter", &json!({"text": "more"}))), "rate_limited");
    run(&["approval", "list", "--all"]);
}

/// "Similar for an hour" lifts the hold of calls with the kept arguments, visibly, until it is revoked.
#[test]
fn similar_calls_pass_until_the_exception_ends() {
    let desk = Desk::new("");
    let agent = desk.agent("/mcp/peer");
    let call = |to: &str, text: &str| {
        code(&agent.call("pid", &json!({"to": to, "text": text}))).to_owned()
    };
    assert_eq!(call("a", "1"), "approval_required");
    let approval = desk.pending();
    let id = approval["id"].as_str().unwrap();
    for wrong in [
        r#"{"similar":{"for":"0s"}}"#,
        r#"{"similar":{"for":"8d"}}"#,
        r#"{"similar":{"for":"1h","keep":["grant.label"]}}"#,
        r#"{"similar":{"for":"1h","kep":[]}}"#,
    ] {
        desk.api().expect(400, "POST", &format!("approvals/{id}/approve"), wrong);
    }
    let words = ["approval", "approve", id, "--similar", "1h", "--keep", "args.to"];
    assert_eq!(desk.gate.home.run(&words).status.code(), Some(0));
    for text in ["1", "2", "3"] {
        assert_eq!(call("a", text), "sent", "{text}");
    }
    assert_eq!(call("b", "1"), "approval_required", "the kept argument differs");
    let listed = desk.gate.home.run(&["approval", "list", "--standing", "-o", "json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let standing = &listed["items"][0];
    assert_eq!((&standing["tool"], &standing["keep"]), (&json!("pid"), &json!(["args.to"])));
    let rows = desk.api().get("audit?limit=1000&kind=intent");
    let rows = rows["items"].as_array().unwrap();
    let by = rows.iter().filter(|row| row["approval_id"] == standing["id"]).count();
    // The approval itself is not used up by a call that the exception lets pass.
    assert!(by >= 2, "{rows:?}");
    let other = r#"{"label":"second","policy":"careful"}"#;
    let token = desk.api().expect(201, "POST", "grants", other)["token"].clone();
    let second = Agent::open_with(&desk.gate, "peer", token.as_str().unwrap());
    let result = second.call("pid", &json!({"to": "a", "text": "1"}));
    assert_eq!(code(&result), "approval_required", "another grant");
    let standing = standing["id"].as_str().unwrap();
    assert_eq!(desk.gate.home.run(&["approval", "revoke", standing]).status.code(), Some(0));
    assert_eq!(call("a", "4"), "approval_required");
    assert_eq!(desk.gate.home.run(&["approval", "revoke", standing]).status.code(), Some(2));
}

/// A notice is signed, repeated until its receiver accepts it, and leads to the page of the approval.
#[test]
fn a_notice_is_repeated_until_it_is_accepted() {
    let hook = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = hook.local_addr().unwrap();
    let received = thread::spawn(move || {
        let statuses = ["500 No", "503 Not yet", "200 OK"];
        statuses.map(|status| receive(&hook, status))
    });
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let settings = format!(
        "approvals: {{ webhook: {{ url: 'http://{address}/hook', secret: env:HOOK }} }}\n\
         public_url: https://gate.example.com/"
    );
    let config = format!("{POLICY}{settings}\nservers:\n{}", peer.entry("listing", ""));
    let gate = Gate::start_as(home, &config, |command| {
        command.env("HOOK", "the key of notices");
    });
    let grant = r#"{"label":"g","policy":"careful"}"#;
    let made = Api::admin(&gate).expect(201, "POST", "grants", grant);
    let agent = Agent::open_with(&gate, "peer", made["token"].as_str().unwrap());
    let result = agent.call("pid", &json!({"text": "<b>\u{202e}"}));
    let id = result["_meta"]["approval_id"].as_str().unwrap();
    let page = format!("https://gate.example.com/approvals/{id}");
    assert_eq!(result["_meta"]["console_url"], page);
    let received = received.join().unwrap();
    let deliveries: Vec<&str> =
        received.iter().map(|(head, _)| header(head, "toolgate-delivery")).collect();
    assert!(deliveries.iter().all(|it| it == &deliveries[0] && !it.is_empty()), "{deliveries:?}");
    for (head, body) in &received {
        let time = header(head, "toolgate-timestamp");
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, b"the key of notices");
        let signed = aws_lc_rs::hmac::sign(&key, format!("{time}.{body}").as_bytes());
        let signature = data_encoding::HEXLOWER.encode(signed.as_ref());
        assert_eq!(header(head, "toolgate-signature"), format!("v1={signature}"));
        let notice: Value = serde_json::from_str(body).unwrap();
        assert_eq!((&notice["id"], &notice["url"]), (&json!(id), &json!(page)));
        assert_eq!(notice["shown"], r#"{"text":"<b>\u{202E}"}"#);
    }
}

/// One request: its head and its body.
fn receive(receiver: &TcpListener, status: &str) -> (String, String) {
    let (mut stream, _) = receiver.accept().unwrap();
    let mut text = Vec::new();
    loop {
        let mut part = [0; 4096];
        let read = stream.read(&mut part).unwrap();
        text.extend_from_slice(&part[..read]);
        let whole = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = whole.split_once("\r\n\r\n")
            && body.len() >= header(head, "content-length").parse().unwrap()
        {
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
            return (head.to_owned(), body.to_owned());
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim()).unwrap_or_default()
}
