//! Hosts of URLs: lower case, punycode, without port or user, and without the dot that may stand
//! behind a name.
//!
//! Invariant: a URL has a host only if WHATWG (browsers) and RFC 3986 (most libraries) read the same
//! one. `https://a\@b/`, `https:a`, `http://0x7f.1/` and the like have none: a server may go
//! somewhere else than the rule looked.

use std::net::Ipv6Addr;

use toolgate_json::{compatible, fold};
use url::{Host, Url};

/// The host of an absolute URL; `None` if the text is none, has no host, or can be read in two ways.
pub(crate) fn of_url(text: &str) -> Option<String> {
    let raw = host_of_authority(authority(text)?)?;
    let url = Url::parse(text).ok()?;
    let host = url.host()?;
    let same = match &host {
        // IPv4 in octal, hexadecimal or short form is a name to others.
        Host::Ipv4(address) => raw == address.to_string(),
        Host::Ipv6(address) => {
            let inner = raw.strip_prefix('[')?.strip_suffix(']')?;
            inner.parse::<Ipv6Addr>().is_ok_and(|raw| raw == *address)
        }
        Host::Domain(name) if raw.is_ascii() => name.eq_ignore_ascii_case(raw),
        Host::Domain(name) => is_plain_name(raw) && dots(name) == dots(raw),
    };
    let host = host.to_string().to_lowercase();
    // Schemes that WHATWG does not know keep their hosts as they are written: `svn://0x7f.1/`.
    let same = same && Host::parse(raw).is_ok_and(|known| known.to_string() == host);
    let host = undotted(host);
    (same && !host.is_empty()).then_some(host)
}

/// The text between `//` and the path, if the text is a URL by RFC 3986 as far as that can move
/// its host.
fn authority(text: &str) -> Option<&str> {
    // WHATWG takes `\` for `/`, and skips blanks and control characters.
    if text.contains(|c: char| c == '\\' || c <= ' ' || c.is_control()) {
        return None;
    }
    let (scheme, rest) = text.split_once(':')?;
    let mut bytes = scheme.bytes();
    let is_scheme = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let rest = rest.strip_prefix("//").filter(|_| is_scheme)?;
    rest.split(['/', '?', '#']).next()
}

/// The host in `user@host:port`.
fn host_of_authority(authority: &str) -> Option<&str> {
    let host = match authority.split_once('@') {
        Some((user, host)) => {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:%".contains(c);
            // Of two `@` some take the first and some the last.
            (user.chars().all(fits) && !host.contains('@')).then_some(host)?
        }
        None => authority,
    };
    let end = match host.rfind(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (host, port) = host.split_at_checked(end)?;
    let is_port =
        port.strip_prefix(':').is_none_or(|port| port.bytes().all(|b| b.is_ascii_digit()));
    // Some decode percent signs in a host, some do not.
    (is_port && (port.is_empty() || port.starts_with(':')) && !host.contains('%')).then_some(host)
}

/// Whether a name outside ASCII is one name by every way of writing it in ASCII.
fn is_plain_name(raw: &str) -> bool {
    compatible(raw) == raw && fold(raw) == raw.to_lowercase()
}

fn dots(name: &str) -> usize {
    name.matches('.').count()
}

/// A host name written in a policy, in the form [`of_url`] gives.
pub(crate) fn name(text: &str) -> Option<String> {
    if text.is_empty() || text.contains(['/', '@', '?', '#', '*', ' ']) {
        return None;
    }
    Host::parse(text).ok().map(|host| undotted(host.to_string()).to_lowercase())
}

fn undotted(mut host: String) -> String {
    if host.ends_with('.') {
        host.pop();
    }
    host
}

#[cfg(test)]
mod tests {
    use super::{name, of_url};

    #[test]
    fn hosts_are_those_that_all_read() {
        for (url, host) in [
            ("https://Example.COM/x", "example.com"),
            ("HTTPS://example.com", "example.com"),
            ("https://user:pw@example.com:8443/", "example.com"),
            ("https://user:p%40w@example.com:/", "example.com"),
            ("https://example.com./", "example.com"),
            ("https://example.com?@evil.com/", "example.com"),
            ("https://example.com#@evil.com/", "example.com"),
            ("https://example.com/@evil.com", "example.com"),
            ("http://127.0.0.1/", "127.0.0.1"),
            ("http://[::1]:80/", "[::1]"),
            ("http://[0:0:0:0:0:0:0:1]/", "[::1]"),
            ("https://пример.рф/", "xn--e1afmkfd.xn--p1ai"),
            ("https://ПРИМЕР.рф/", "xn--e1afmkfd.xn--p1ai"),
            ("https://xn--e1afmkfd.xn--p1ai/", "xn--e1afmkfd.xn--p1ai"),
            ("custom://Some.Host/x", "some.host"),
            ("https://example.com/путь?q=[x]{y}", "example.com"),
        ] {
            assert_eq!(of_url(url).as_deref(), Some(host), "{url}");
        }
    }

    #[test]
    fn what_is_read_in_two_ways_has_no_host() {
        for url in [
            "https://allowed.com\\@evil.com/",
            "https://evil.com\\@allowed.com/",
            "https://allowed.com\\.evil.com/",
            "https:\\\\allowed.com/",
            "https:/allowed.com/",
            "https:allowed.com/",
            "https:///allowed.com/",
            "https:////allowed.com/",
            "https://ex\tample.com/",
            "https://exam\nple.com/",
            "https://allowed.com\r\n/",
            " https://allowed.com/",
            "https://allowed.com/ ",
            "\u{1}https://allowed.com/",
            "ht\ntps://allowed.com/",
            "https://allowed.com\u{0}.evil.com/",
            "https://allowed%2ecom/",
            "https://%61llowed.com/",
            "https://allowed.com%2f@evil.com%",
            "https://a@evil.com@allowed.com/",
            "https://evil.com[@allowed.com/",
            "https://evil.com|@allowed.com/",
            "https://ａllowed.com/",
            "https://allowed。com/",
            "https://allowed．com/",
            "https://allo\u{ad}wed.com/",
            "https://allo\u{200b}wed.com/",
            "https://faß.de/",
            "https://βόλος.com/",
            "https://\u{212a}.com/",
            "https://ⓔxample.com/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://127.0.0.01/",
            "http://127.1/",
            "http://0x7f000001/",
            "svn://0x7f.1/",
            "svn://2130706433/",
            "svn://пример.рф/",
            "svn://xn--/",
            "https://allowed.com:x/",
            "https://allowed.com:80:90/",
            "https://allowed.com:99999/",
            "https://[::1%25eth0]/",
            "https://[::1]evil.com/",
            "https://",
            "https:///",
            "https://@/",
            "https://:80/",
            "//example.com/",
            "example.com",
            "mailto:a@example.com",
            "file:///etc/passwd",
            "file://localhost/etc/passwd",
            "javascript:alert(1)",
            "",
        ] {
            assert_eq!(of_url(url), None, "{url:?}");
        }
    }

    #[test]
    fn names_in_policies_are_bare_hosts() {
        assert_eq!(name("Example.com").as_deref(), Some("example.com"));
        assert_eq!(name("пример.рф").as_deref(), Some("xn--e1afmkfd.xn--p1ai"));
        for bad in ["", "https://example.com", "*.example.com", "a b", "example.com/x", "host:80"] {
            assert_eq!(name(bad), None, "{bad}");
        }
    }
}
