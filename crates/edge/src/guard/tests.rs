use super::*;

/// A request head as the guard sees it: target, Host headers, Origin headers.
type Head = (&'static str, &'static [&'static str], &'static [&'static str]);

fn guard(bound_to: &str, browsers: Browsers) -> Guard {
    Guard {
        bound_to: bound_to.parse().unwrap(),
        hosts: vec!["gate.example.com".into()],
        origins: vec!["https://app.example.com".into()],
        browsers,
        https: false,
    }
}

#[track_caller]
fn check(guard: &Guard, cases: &[(Head, Option<Denied>)]) {
    for ((target, hosts, origins), expected) in cases {
        let mut headers = HeaderMap::new();
        for host in *hosts {
            headers.append(HOST, HeaderValue::from_bytes(host.as_bytes()).unwrap());
        }
        for origin in *origins {
            headers.append(ORIGIN, HeaderValue::from_bytes(origin.as_bytes()).unwrap());
        }
        let result = guard.check(&target.parse().unwrap(), &headers).err();
        assert_eq!(result, *expected, "{target} Host {hosts:?} Origin {origins:?}");
    }
}

const P: &str = "/mcp/x";

#[test]
fn hosts_on_a_loopback_listener() {
    use Denied::{Host, HostCount, TwoHosts};
    let cases: &[(Head, Option<Denied>)] = &[
        ((P, &["localhost"], &[]), None),
        ((P, &["localhost:4001"], &[]), None),
        ((P, &["LOCALHOST:4001"], &[]), None),
        ((P, &["127.0.0.1"], &[]), None),
        ((P, &["127.0.0.1:65535"], &[]), None),
        ((P, &["127.8.9.1:80"], &[]), None),
        ((P, &["[::1]"], &[]), None),
        ((P, &["[::1]:4001"], &[]), None),
        ((P, &["gate.example.com"], &[]), None),
        ((P, &["Gate.Example.com:443"], &[]), None),
        ((P, &["localhost."], &[]), Some(Host)),
        ((P, &["gate.example.com."], &[]), Some(Host)),
        ((P, &["evil.example.com"], &[]), Some(Host)),
        ((P, &["evil.example.com:4001"], &[]), Some(Host)),
        ((P, &["localhost.evil.example.com"], &[]), Some(Host)),
        ((P, &["localhost@evil.example.com"], &[]), Some(Host)),
        ((P, &["127.0.0.1.evil.example.com"], &[]), Some(Host)),
        ((P, &["127.0.0.1@evil.example.com"], &[]), Some(Host)),
        ((P, &["127.1"], &[]), Some(Host)),
        ((P, &["0x7f000001"], &[]), Some(Host)),
        ((P, &["2130706433"], &[]), Some(Host)),
        ((P, &["0.0.0.0:4001"], &[]), Some(Host)),
        ((P, &["192.168.0.7"], &[]), Some(Host)),
        ((P, &["[fe80::1]"], &[]), Some(Host)),
        ((P, &["[::ffff:127.0.0.1]"], &[]), Some(Host)),
        ((P, &["::1"], &[]), Some(Host)),
        ((P, &["[::1"], &[]), Some(Host)),
        ((P, &["[::1]evil"], &[]), Some(Host)),
        ((P, &["localhost:"], &[]), Some(Host)),
        ((P, &["localhost:99999"], &[]), Some(Host)),
        ((P, &["localhost:4001:1"], &[]), Some(Host)),
        ((P, &["local host"], &[]), Some(Host)),
        ((P, &["lоcalhost"], &[]), Some(Host)),
        ((P, &[""], &[]), Some(Host)),
        ((P, &[], &[]), Some(HostCount)),
        ((P, &["localhost", "localhost"], &[]), Some(HostCount)),
        ((P, &["localhost", "evil.example.com"], &[]), Some(HostCount)),
        (("http://localhost:4001/mcp/x", &["localhost:4001"], &[]), None),
        (("http://evil.example.com/mcp/x", &["localhost"], &[]), Some(TwoHosts)),
        (("http://localhost/mcp/x", &["evil.example.com"], &[]), Some(Host)),
        (("http://evil.example.com/mcp/x", &["evil.example.com"], &[]), Some(Host)),
    ];
    check(&guard("127.0.0.1", Browsers::Local), cases);
}

#[test]
fn an_open_listener_takes_any_address_but_only_listed_names() {
    let cases: &[(Head, Option<Denied>)] = &[
        ((P, &["192.168.0.7:4001"], &[]), None),
        ((P, &["[2001:db8::1]:4001"], &[]), None),
        ((P, &["localhost"], &[]), None),
        ((P, &["gate.example.com"], &[]), None),
        ((P, &["evil.example.com"], &[]), Some(Denied::Host)),
    ];
    check(&guard("0.0.0.0", Browsers::Local), cases);
}

#[test]
fn origins() {
    use Denied::{Origin, OriginCount};
    const H: &[&str] = &["localhost:4001"];
    let cases: &[(Head, Option<Denied>)] = &[
        ((P, H, &["http://localhost:6274"]), None),
        ((P, H, &["http://127.0.0.1:3000"]), None),
        ((P, H, &["https://[::1]:3000"]), None),
        ((P, H, &["https://app.example.com"]), None),
        ((P, H, &["HTTPS://APP.example.com"]), None),
        ((P, H, &["https://app.example.com:8443"]), Some(Origin)),
        ((P, H, &["http://app.example.com"]), Some(Origin)),
        ((P, H, &["https://evil.example.com"]), Some(Origin)),
        ((P, H, &["http://localhost.evil.example.com"]), Some(Origin)),
        ((P, H, &["http://localhost@evil.example.com"]), Some(Origin)),
        ((P, H, &["null"]), Some(Origin)),
        ((P, H, &[""]), Some(Origin)),
        ((P, H, &["file://localhost"]), Some(Origin)),
        ((P, H, &["chrome-extension://localhost"]), Some(Origin)),
        ((P, H, &["http://localhost/path"]), Some(Origin)),
        ((P, H, &["http://localhost", "http://localhost"]), Some(OriginCount)),
        ((P, H, &["http://localhost", "https://evil.example.com"]), Some(OriginCount)),
    ];
    check(&guard("127.0.0.1", Browsers::Local), cases);
}

#[test]
fn people_come_from_the_listeners_own_pages() {
    let cases: &[(Head, Option<Denied>)] = &[
        ((P, &["localhost:4002"], &[]), None),
        ((P, &["localhost:4002"], &["http://localhost:4002"]), None),
        ((P, &["127.0.0.1:4002"], &["http://127.0.0.1:4002"]), None),
        ((P, &["127.0.0.1:4002"], &["http://localhost:4002"]), Some(Denied::Origin)),
        ((P, &["localhost:4002"], &["http://localhost:4003"]), Some(Denied::Origin)),
        ((P, &["localhost:4002"], &["https://app.example.com"]), Some(Denied::Origin)),
        ((P, &["localhost:4002"], &["null"]), Some(Denied::Origin)),
    ];
    check(&guard("127.0.0.1", Browsers::OwnPages), cases);
    let cases: &[(Head, Option<Denied>)] = &[
        ((P, &["gate.example.com"], &["https://gate.example.com"]), None),
        ((P, &["gate.example.com"], &["HTTPS://Gate.Example.com"]), None),
        ((P, &["10.0.0.5:4002"], &["https://10.0.0.5:4002"]), None),
        ((P, &["gate.example.com"], &["http://gate.example.com"]), Some(Denied::Origin)),
        ((P, &["gate.example.com"], &["https://app.example.com"]), Some(Denied::Origin)),
        ((P, &["gate.example.com"], &["https://gate.example.com:8443"]), Some(Denied::Origin)),
    ];
    check(&Guard { https: true, ..guard("0.0.0.0", Browsers::OwnPages) }, cases);
}

#[test]
fn headers_that_decide_something_have_one_value() {
    let guard = guard("127.0.0.1", Browsers::Local);
    let check = |repeated: &[(&'static str, &'static str)]| {
        let mut headers = HeaderMap::new();
        headers.append(HOST, HeaderValue::from_static("localhost"));
        for (name, value) in repeated {
            headers.append(*name, HeaderValue::from_static(value));
        }
        guard.check(&P.parse().unwrap(), &headers).err()
    };
    for name in
        ["content-type", "content-length", "last-event-id", "toolgate-session", "mcp-session-id"]
    {
        assert_eq!(check(&[(name, "1")]), None, "{name}");
        // Equal values as well: which one is meant is for no reader to guess.
        for pair in [[(name, "1"), (name, "2")], [(name, "1"), (name, "1")]] {
            let denied = check(&pair).unwrap();
            assert_eq!(denied, Denied::Repeated(HeaderName::from_static(name)));
            assert_eq!(denied.status(), StatusCode::BAD_REQUEST);
        }
    }
    assert_eq!(
        check(&[("accept", "a/b"), ("accept", "c/d"), ("x-other", "1"), ("x-other", "2")]),
        None
    );
    let both = [("content-length", "1"), ("transfer-encoding", "chunked")];
    assert_eq!(check(&both), Some(Denied::TwoLengths));
}
