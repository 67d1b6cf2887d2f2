//! Any URL: a host is read only where RFC 3986 and WHATWG read the same one, and a rule on hosts
//! lets nothing else pass; the normal form of a URI is its own normal form.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use toolgate_policy::fuzz::host_of_url;
use toolgate_policy::{Call, Class, Effect, Known, Policy, UNUSED, decide, normal_uri};
use url::{Host, Url};

const ALLOWED: &str = "allowed.com";

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let source = r#"
version: "1"
default: deny
tools:
  fetch:
    action: allow
    require:
      - conditions: [{ path: args.url, op: host_in, value: [allowed.com] }]
"#;
    let loaded = Policy::load("p", source, &Known::default());
    loaded.policy.unwrap_or_else(|| panic!("{:#?}", loaded.problems))
});

fuzz_target!(|text: &str| {
    let host = host_of_url(text);
    if let Some(host) = &host {
        assert_eq!(whatwg(text).as_ref(), Some(host), "{text:?}");
        assert_eq!(rfc_3986(text, str::split_once).as_ref(), Some(host), "{text:?}");
        assert_eq!(rfc_3986(text, str::rsplit_once).as_ref(), Some(host), "{text:?}");
        assert_eq!(*host, host.to_lowercase());
    }
    let arguments = serde_json::json!({ "url": text }).to_string();
    let call = Call::new("s", "fetch", Class::Other, &arguments);
    let effect = decide(&POLICY, &call, &UNUSED, jiff::Timestamp::UNIX_EPOCH).effect;
    assert_eq!(effect == Effect::Allow, host.as_deref() == Some(ALLOWED), "{text:?}");

    let normal = normal_uri(text);
    assert_eq!(normal_uri(&normal), normal, "{text:?}");
});

/// The host that browsers find.
fn whatwg(text: &str) -> Option<String> {
    Url::parse(text).ok()?.host().map(|host| plain(&host.to_string()))
}

/// The host by the grammar: between `//` and the path, without user and port. `at` says which `@`
/// ends the user.
fn rfc_3986(
    text: &str,
    at: impl for<'t> Fn(&'t str, char) -> Option<(&'t str, &'t str)>,
) -> Option<String> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = at(authority, '@').map_or(authority, |(_, host)| host);
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    };
    Host::parse(host).ok().map(|host| plain(&host.to_string()))
}

fn plain(host: &str) -> String {
    let host = host.to_lowercase();
    host.strip_suffix('.').unwrap_or(&host).to_owned()
}
