//! Safety checks of a start and of a reload: listeners that would be open to other machines without
//! the protection they need.

use std::net::SocketAddr;

use toolgate_config::{Config, Listen, Loaded, Problem};

/// A listener that would be open. Its text says what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}; {}", self.message(), self.hint())]
pub enum Unsafe {
    /// Agents from other machines, without any grant.
    Agents(SocketAddr),
    /// Programs from other machines, without session tokens.
    Sessions(SocketAddr),
    /// People from other machines, without TLS.
    Admin(SocketAddr),
}

impl Unsafe {
    /// The key of the listener in `listen`.
    fn listener(self) -> &'static str {
        match self {
            Self::Agents(_) => "mcp",
            Self::Sessions(_) => "sessions",
            Self::Admin(_) => "admin",
        }
    }

    fn message(self) -> String {
        let (address, why) = match self {
            Self::Agents(address) => {
                (address, ", and there is no grant: any client could call every tool")
            }
            Self::Sessions(address) => {
                (address, ", and there are no session tokens: any client could publish tools")
            }
            Self::Admin(address) => (address, " without TLS: tokens would be sent unencrypted"),
        };
        format!("`listen.{}` is {address}, which other machines can reach{why}", self.listener())
    }

    fn hint(self) -> &'static str {
        match self {
            Self::Agents(_) => "listen on 127.0.0.1, or configure `grants`",
            Self::Sessions(_) => "listen on 127.0.0.1, or configure `sessions.tokens`",
            Self::Admin(_) => "listen on 127.0.0.1, or configure `tls` or `behind_proxy`",
        }
    }
}

/// What prevents a start with this file, at the positions of the listeners in it.
pub fn problems(loaded: &Loaded, has_stored_grants: bool) -> Vec<Problem> {
    let reasons = reasons(&loaded.config, &loaded.config.listen, has_stored_grants);
    let at = |reason: &Unsafe| {
        let found = loaded.listeners.iter().find(|(name, _)| *name == reason.listener());
        let (message, hint) = (reason.message(), Some(reason.hint().to_owned()));
        found.map(|(_, problem)| Problem { message, hint, ..problem.clone() })
    };
    reasons.iter().filter_map(at).collect()
}

/// Every reason not to serve like that. `listen` is where toolgate listens, or is about to: while it
/// runs, the addresses that are bound, whatever the file names by then. `has_stored_grants`: there
/// are, or may be, grants that were created at run time.
pub fn reasons(config: &Config, listen: &Listen, has_stored_grants: bool) -> Vec<Unsafe> {
    let has_grants = has_stored_grants || !config.grants.is_empty();
    let has_tokens = !config.sessions.tokens.is_empty();
    let is_shielded = config.tls.is_some() || !config.behind_proxy.is_empty();
    let agents = open(listen.mcp).filter(|_| !has_grants).map(Unsafe::Agents);
    let sessions = open(listen.sessions).filter(|_| !has_tokens).map(Unsafe::Sessions);
    let admin = open(listen.admin).filter(|_| !is_shielded).map(Unsafe::Admin);
    [agents, sessions, admin].into_iter().flatten().collect()
}

fn open(address: Option<SocketAddr>) -> Option<SocketAddr> {
    address.filter(|address| !address.ip().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::config as parse;

    #[test]
    fn listeners_that_would_be_open() {
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
            let config = parse(text);
            let reasons = reasons(&config, &config.listen, false);
            assert_eq!(reasons.len(), expected.len(), "{text}: {reasons:?}");
            for (reason, expected) in reasons.iter().zip(*expected) {
                assert!(reason.to_string().starts_with(expected), "{reason}");
            }
        }
    }

    #[test]
    fn a_stored_grant_is_a_grant() {
        let config = parse("listen: { mcp: 0.0.0.0:4001 }");
        assert_eq!(reasons(&config, &config.listen, true), []);
    }

    #[test]
    fn the_addresses_that_are_bound_are_judged() {
        let public = "{ mcp: 0.0.0.0:1, sessions: 0.0.0.0:2, admin: 0.0.0.0:3 }";
        let bound = parse(&format!("listen: {public}")).listen;
        let loopback = parse("").listen;
        for listen in ["{}", "{ mcp: off, sessions: off, admin: off }", public] {
            let file = parse(&format!("listen: {listen}"));
            assert_eq!(reasons(&file, &bound, false).len(), 3, "{listen}");
            assert_eq!(reasons(&file, &loopback, false), [], "{listen}");
        }
    }
}
