//! What toolgate refuses to start with, or to reload: doors that would stand open.

use std::net::SocketAddr;

use toolgate_config::{Config, Listen};

/// Every reason not to serve like that, each with what to do. `listen` is where toolgate listens, or
/// is about to: while it runs, the addresses that are bound, whatever the file names by then.
/// `kept_grants`: there are, or may be, grants that were made at run time.
pub(crate) fn reasons(config: &Config, listen: &Listen, kept_grants: bool) -> Vec<String> {
    let mut reasons = Vec::new();
    let granted = kept_grants || !config.grants.is_empty();
    if let Some(address) = open(listen.mcp).filter(|_| !granted) {
        reasons.push(format!(
            "`listen.mcp` is {address}, which other machines can reach, and there is no grant: \
             anybody could call every tool. Listen on 127.0.0.1, or configure `grants`"
        ));
    }
    if let Some(address) = open(listen.sessions).filter(|_| config.sessions.tokens.is_empty()) {
        reasons.push(format!(
            "`listen.sessions` is {address}, which other machines can reach, and there are no \
             session tokens: anybody could publish tools. Listen on 127.0.0.1, or configure \
             `sessions.tokens`"
        ));
    }
    let shielded = config.tls.is_some() || !config.behind_proxy.is_empty();
    if let Some(address) = open(listen.admin).filter(|_| !shielded) {
        reasons.push(format!(
            "`listen.admin` is {address}, which other machines can reach, without TLS: tokens \
             would travel in the clear. Listen on 127.0.0.1, or configure `tls` or `behind_proxy`"
        ));
    }
    reasons
}

fn open(address: Option<SocketAddr>) -> Option<SocketAddr> {
    address.filter(|address| !address.ip().is_loopback())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use toolgate_config::Surroundings;

    use super::*;

    struct Nothing;

    impl Surroundings for Nothing {
        fn env(&self, _: &str) -> Option<String> {
            Some("a-token-of-more-than-20-characters".to_owned())
        }
        fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
            Ok(b"a file".to_vec())
        }
    }

    #[test]
    fn doors_that_would_stand_open() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("listen: { mcp: 127.0.0.1:0, sessions: '[::1]:0', admin: localhost:0 }", &[]),
            ("listen: { mcp: off, sessions: off, admin: off }", &[]),
            ("listen: { mcp: 0.0.0.0:4001 }", &["`listen.mcp` is 0.0.0.0:4001"]),
            ("listen: { mcp: '[::]:4001' }", &["`listen.mcp` is [::]:4001"]),
            ("listen: { mcp: 192.168.1.5:4001 }", &["`listen.mcp` is 192.168.1.5:4001"]),
            ("listen: { sessions: 0.0.0.0:4000 }", &["`listen.sessions` is 0.0.0.0:4000"]),
            ("listen: { admin: 0.0.0.0:4002 }", &["`listen.admin` is 0.0.0.0:4002"]),
            // Metrics are for people with a token there.
            ("listen: { metrics: 0.0.0.0:4003 }", &[]),
            (
                "listen: { mcp: 0.0.0.0:1, sessions: 0.0.0.0:2, admin: 0.0.0.0:3 }",
                &["`listen.mcp`", "`listen.sessions`", "`listen.admin`"],
            ),
            ("listen: { sessions: 0.0.0.0:4000 }\nsessions: { tokens: [env:T] }", &[]),
            (
                "policies: { p: { file: p.yaml } }\n\
                 grants: [{ label: a, token: env:T, policy: p }]",
                &[],
            ),
            ("local: off", &[]),
            ("people: [{ name: duty, token: env:T, roles: [viewer] }]", &[]),
            ("behind_proxy: [10.0.0.0/8]", &[]),
            ("listen: { admin: 0.0.0.0:4002 }\nbehind_proxy: [10.0.0.0/8]", &[]),
            ("listen: { admin: 0.0.0.0:4002 }\ntls: { cert: c.pem, key: k.pem }", &[]),
            // They make no token of an agent or a session unnecessary.
            (
                "listen: { mcp: 0.0.0.0:4001 }\ntls: { cert: c.pem, key: k.pem }",
                &["`listen.mcp` is 0.0.0.0:4001"],
            ),
            (
                "listen: { sessions: 0.0.0.0:4000 }\nbehind_proxy: [10.0.0.0/8]",
                &["`listen.sessions` is 0.0.0.0:4000"],
            ),
        ];
        for (text, expected) in cases {
            let text = format!("version: 1\n{text}\n");
            let config = Config::parse(&text, Path::new("t.yaml"), &Nothing).unwrap().config;
            let reasons = reasons(&config, &config.listen, false);
            assert_eq!(reasons.len(), expected.len(), "{text}: {reasons:?}");
            for (reason, expected) in reasons.iter().zip(*expected) {
                assert!(reason.starts_with(expected), "{reason}");
            }
        }
    }

    #[test]
    fn a_kept_grant_is_a_grant() {
        let text = "version: 1\nlisten: { mcp: 0.0.0.0:4001 }\n";
        let config = Config::parse(text, Path::new("t.yaml"), &Nothing).unwrap().config;
        assert_eq!(reasons(&config, &config.listen, true), Vec::<String>::new());
    }

    #[test]
    fn the_addresses_that_are_bound_are_judged() {
        let parse = |text: &str| {
            let text = format!("version: 1\n{text}\n");
            Config::parse(&text, Path::new("t.yaml"), &Nothing).unwrap().config
        };
        let public = "{ mcp: 0.0.0.0:1, sessions: 0.0.0.0:2, admin: 0.0.0.0:3 }";
        let bound = parse(&format!("listen: {public}")).listen;
        let loopback = parse("").listen;
        for listen in ["{}", "{ mcp: off, sessions: off, admin: off }", public] {
            let file = parse(&format!("listen: {listen}"));
            assert_eq!(reasons(&file, &bound, false).len(), 3, "{listen}");
            assert_eq!(reasons(&file, &loopback, false), Vec::<String>::new(), "{listen}");
        }
    }
}
