//! The console over HTTP: sign-in, its end, forms, headers, limits.

use serde_json::{Value, json};

use crate::api::{Api, admin_token};
use crate::gate::Gate;
use crate::run::Client;
use crate::wire::{Reply, ask};

/// A browser: the cookie and the CSRF token that it has.
struct Browser {
    address: String,
    cookie: String,
}

impl Browser {
    fn new(gate: &Gate) -> Self {
        Self { address: gate.admin(), cookie: String::new() }
    }

    fn get(&self, path: &str) -> Reply {
        let Self { address, cookie } = self;
        ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\n\r\n"))
    }

    /// Sends a form with these further headers.
    fn post(&self, path: &str, form: &str, more: &str) -> Reply {
        let Self { address, cookie } = self;
        let kind = "application/x-www-form-urlencoded";
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\nContent-Type: {kind}\r\n"
        );
        ask(address, &format!("{head}{more}Content-Length: {}\r\n\r\n{form}", form.len()))
    }

    /// Signs in with a token.
    fn sign_in(gate: &Gate, token: &str) -> Self {
        let mut browser = Self::new(gate);
        let reply = browser.post("/login", &format!("token={token}"), "");
        assert_eq!((reply.status, reply.header("location")), (303, Some("/")), "{reply:?}");
        browser.keep(&reply);
        browser
    }

    fn keep(&mut self, reply: &Reply) {
        let set = reply.header("set-cookie").unwrap();
        assert!(set.contains("; HttpOnly; SameSite=Strict"), "{set}");
        set.split(';').next().unwrap().clone_into(&mut self.cookie);
    }

    /// The CSRF token of a page.
    fn csrf(&self) -> String {
        let page = self.get("/grants").body;
        let rest = page.split("name=\"csrf\" value=\"").nth(1).unwrap();
        rest.split('"').next().unwrap().to_owned()
    }

    fn is_signed_in(&self) -> bool {
        self.get("/").status == 200
    }
}

#[test]
fn nothing_is_shown_without_a_sign_in_and_every_page_is_secured() {
    let gate = Gate::start("");
    let browser = Browser::new(&gate);
    for path in ["/", "/servers", "/tools", "/policies/x", "/audit/1", "/people", "/console/styles"]
    {
        let reply = browser.get(path);
        assert_eq!(reply.status, 303, "{path}");
        assert!(reply.header("location").unwrap().starts_with("/login"), "{path}");
    }
    assert_eq!(browser.get("/console/events").status, 401);
    assert_eq!(browser.post("/freeze", "", "").status, 401);
    let signed_in = Browser::sign_in(&gate, &admin_token(&gate.home));
    let pages = [
        "/",
        "/login",
        "/servers",
        "/tools",
        "/policies",
        "/policies/recommended",
        "/grants",
        "/people",
        "/sessions",
        "/audit",
        "/approvals",
        "/catalog",
        "/policies/nothing",
        "/assets/console.css",
    ];
    for path in pages {
        let reply = signed_in.get(path);
        let expected = if path.ends_with("nothing") { 404 } else { 200 };
        assert_eq!(reply.status, expected, "{path}: {}", reply.body);
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{path}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{path}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        if path.starts_with("/assets") {
            continue;
        }
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
        for forbidden in ["<script>", " style=\"", "onclick=", "javascript:"] {
            assert!(!reply.body.contains(forbidden), "{path} has {forbidden}");
        }
    }
    // Nothing of it is on the agents' port.
    assert_eq!(crate::wire::get(&gate.mcp(), "/login").status, 404);
}

#[test]
fn a_form_needs_its_token_and_the_own_site() {
    let gate = Gate::start("");
    let browser = Browser::sign_in(&gate, &admin_token(&gate.home));
    let csrf = browser.csrf();
    for (form, more, status) in [
        (String::new(), "", 403),
        ("csrf=".to_owned(), "", 403),
        (format!("csrf={}", "0".repeat(64)), "", 403),
        (format!("csrf={csrf}"), "Sec-Fetch-Site: cross-site\r\n", 403),
        (format!("csrf={csrf}"), "Sec-Fetch-Site: same-site\r\n", 403),
        (format!("csrf={csrf}"), "Origin: http://evil.example\r\n", 403),
        (format!("csrf={csrf}"), "Sec-Fetch-Site: same-origin\r\n", 303),
    ] {
        assert_eq!(browser.post("/freeze", &form, more).status, status, "{form} {more}");
    }
    let freezes = Api::admin(&gate).get("freeze");
    assert_eq!(freezes["items"].as_array().unwrap().len(), 1, "only the last form froze");
    // The token of one sign-in is not that of another.
    let other = Browser::sign_in(&gate, &admin_token(&gate.home));
    assert_eq!(other.post("/logout", &format!("csrf={csrf}"), "").status, 403);
    assert_eq!(browser.post("/logout", &format!("csrf={csrf}"), "").status, 303);
    assert!(!browser.is_signed_in() && other.is_signed_in());
}

#[test]
fn a_message_waits_for_the_page_that_the_person_opens() {
    let gate = Gate::start("");
    let browser = Browser::sign_in(&gate, &admin_token(&gate.home));
    let csrf = browser.csrf();
    let frozen = "Calls are refused from now on";
    assert_eq!(browser.post("/freeze", &format!("csrf={csrf}"), "").status, 303);
    // An open page loads its live parts again at this moment.
    let Browser { address, cookie } = &browser;
    let part =
        format!("GET / HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\nX-Page-Part: 1\r\n\r\n");
    let part = ask(address, &part);
    assert!(part.status == 200 && !part.body.contains(frozen), "{}", part.body);
    assert!(browser.get("/").body.contains(frozen));
    assert!(!browser.get("/").body.contains(frozen), "once");
}

#[test]
fn the_eleventh_wrong_token_of_a_minute_is_429() {
    let gate = Gate::start("");
    let browser = Browser::new(&gate);
    for n in 1..=10 {
        assert_eq!(browser.post("/login", &format!("token=wrong{n}"), "").status, 401, "{n}");
    }
    let refused = browser.post("/login", "token=wrong", "");
    assert_eq!(refused.status, 429);
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=61).contains(&wait), "{wait}");
    // A token of an agent opens nothing either.
    let rows = Api::admin(&gate).get("audit?kind=refused");
    assert!(!rows["items"].as_array().unwrap().is_empty(), "wrong tokens are recorded");
}

#[test]
fn a_sign_in_ends_with_the_token_that_opened_it() {
    let gate = Gate::start("");
    let api = Api::admin(&gate);
    let made = api.expect(
        201,
        "POST",
        "people",
        &json!({"name": "duty", "roles": ["viewer"]}).to_string(),
    );
    let viewer = Browser::sign_in(&gate, made["token"].as_str().unwrap());
    assert!(viewer.is_signed_in());
    // A viewer sees no forms that change something, and cannot send them.
    assert!(!viewer.get("/servers").body.contains("action=\"/servers\""));
    let csrf = viewer.get("/").body;
    let csrf = csrf.split("data-csrf=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let sent = viewer.post("/freeze", &format!("csrf={csrf}"), "");
    assert_eq!(sent.status, 303);
    assert!(viewer.get("/").body.contains("this needs the role"), "the refusal is shown");
    assert_eq!(api.get("freeze")["items"].as_array().unwrap().len(), 0);
    let id = made["id"].as_str().unwrap();
    let rotated = api.expect(200, "POST", &format!("people/{id}/rotate"), "");
    assert!(!viewer.is_signed_in(), "ends on rotate");
    let again = Browser::sign_in(&gate, rotated["token"].as_str().unwrap());
    api.expect(204, "DELETE", &format!("people/{id}"), "");
    assert!(!again.is_signed_in(), "ends on revoke");
}

#[test]
fn a_link_signs_in_once_and_only_after_a_confirmation() {
    let gate = Gate::start("");
    let printed = gate.home.run(&["console", "--no-open"]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    let link = printed.trim();
    let path = link.strip_prefix(&format!("http://{}", gate.admin())).unwrap();
    let code = path.split("code=").nth(1).unwrap();
    let mut browser = Browser::new(&gate);
    for _ in 0..2 {
        let page = browser.get(path);
        assert_eq!(
            (page.status, page.header("set-cookie")),
            (200, None),
            "looking signs nobody in"
        );
        assert!(page.body.contains("Sign in as admin"));
    }
    let reply = browser.post("/login", &format!("code={code}"), "");
    assert_eq!(reply.status, 303);
    browser.keep(&reply);
    assert!(browser.is_signed_in());
    assert_eq!(Browser::new(&gate).post("/login", &format!("code={code}"), "").status, 401);
    assert_eq!(Browser::new(&gate).get(path).status, 401);
    assert!(!gate.log.text().contains(code), "the link is not logged");
}

#[test]
fn what_the_console_changes_is_recorded_as_such() {
    let gate = Gate::start("");
    let browser = Browser::sign_in(&gate, &admin_token(&gate.home));
    let csrf = browser.csrf();
    let created =
        browser.post("/grants", &format!("csrf={csrf}&label=laptop&policy=recommended"), "");
    assert_eq!(created.status, 200);
    assert!(created.body.contains("tg_"), "the token is shown once");
    assert!(!browser.get("/grants").body.contains("tg_"), "and never again");
    let rows = Api::admin(&gate).get("audit?kind=admin&grant=laptop");
    let row = &rows["items"][0];
    assert_eq!([&row["person"], &row["via"]], ["admin", "console"], "{row}");
}

#[test]
fn the_configuration_of_claude_desktop_starts_a_bridge_that_works() {
    let gate = Gate::start("");
    let browser = Browser::sign_in(&gate, &admin_token(&gate.home));
    let form = format!("csrf={}&label=desktop&policy=recommended", browser.csrf());
    let page = browser.post("/grants", &form, "").body.replace("&#34;", "\"");
    let start = "{\n  \"mcpServers\": {\n    \"toolgate\": {\n      \"args\"";
    let (_, entry) = page.split_once(start).unwrap();
    let text = format!("{start}{entry}");
    let mut values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let entry = values.next().unwrap().unwrap()["mcpServers"]["toolgate"].take();
    let words: Vec<&str> =
        entry["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!((&entry["command"], words[0]), (&json!("toolgate"), "run"));
    let mut client = Client::start_as(&gate.home, &words[1..], |command| {
        command.env("TOOLGATE_TOKEN", entry["env"]["TOOLGATE_TOKEN"].as_str().unwrap());
    });
    let welcome = client.open();
    assert_eq!(welcome["result"]["serverInfo"]["name"], "toolgate", "{welcome}");
}

#[test]
fn a_new_sign_in_ends_that_of_the_same_browser() {
    let gate = Gate::start("");
    let token = admin_token(&gate.home);
    let old = Browser::sign_in(&gate, &token);
    let mut same = Browser { address: old.address.clone(), cookie: old.cookie.clone() };
    let reply = same.post("/login", &format!("token={token}"), "");
    same.keep(&reply);
    assert_ne!(same.cookie, old.cookie);
    assert!(same.is_signed_in() && !old.is_signed_in());
}

#[test]
fn large_bodies_are_read_only_from_people_who_are_signed_in() {
    let gate = Gate::start("");
    let address = gate.admin();
    // Heads alone are answered: nothing of the announced bodies is awaited.
    for (path, status) in [("/login", 413), ("/preferences", 413), ("/policies/recommended", 401)] {
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 9000000\r\n\r\n");
        assert_eq!(ask(&address, &head).status, status, "{path}");
    }
}

#[test]
fn names_of_strangers_are_quoted_in_commands() {
    let gate = Gate::start("");
    let browser = Browser::sign_in(&gate, &admin_token(&gate.home));
    let page = browser.get("/audit?tool=%27%3B+id+%23").body.replace("&#39;", "'");
    assert!(page.contains(r"toolgate audit list --tool ''\''; id #'"), "{page}");
}

#[test]
fn behind_a_proxy_with_tls_the_cookie_is_bound_to_the_host() {
    let gate = Gate::start("public_url: https://gate.example.com\nhosts: [gate.example.com]\n");
    let token = admin_token(&gate.home);
    let form = format!("token={token}");
    let sign_in = |host: &str| {
        let kind = "application/x-www-form-urlencoded";
        let head = format!("POST /login HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\n");
        let request = format!("{head}Content-Length: {}\r\n\r\n{form}", form.len());
        let reply = ask(&gate.admin(), &request);
        reply.header("set-cookie").unwrap().to_owned()
    };
    let public = sign_in("gate.example.com");
    assert!(public.starts_with("__Host-toolgate=") && public.ends_with("; Secure"), "{public}");
    let local = sign_in(&gate.admin());
    assert!(local.starts_with("toolgate=") && !local.contains("Secure"), "{local}");
}
