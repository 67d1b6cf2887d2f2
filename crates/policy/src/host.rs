//! Hosts of URLs, as browsers read them: lower case, punycode, IPv4 in any spelling, without port
//! or user, and without the dot that may stand behind a name.

use url::{Host, Url};

/// The host of an absolute URL; `None` if the text is none or has no host.
pub(crate) fn of_url(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    url.host().map(|host| undotted(host.to_string()).to_lowercase()).filter(|h| !h.is_empty())
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
    fn hosts_are_read_as_browsers_do() {
        for (url, host) in [
            ("https://Example.COM/x", Some("example.com")),
            ("https://user:pw@example.com:8443/", Some("example.com")),
            ("https://evil.com\\@example.com/", Some("evil.com")),
            ("https://example.com./", Some("example.com")),
            ("http://0x7f.1/", Some("127.0.0.1")),
            ("http://2130706433/", Some("127.0.0.1")),
            ("http://[::1]:80/", Some("[::1]")),
            ("https://пример.рф/", Some("xn--e1afmkfd.xn--p1ai")),
            ("https://ex\tample.com/", Some("example.com")),
            ("custom://Some.Host/x", Some("some.host")),
            ("//example.com/", None),
            ("example.com", None),
            ("mailto:a@example.com", None),
            ("file:///etc/passwd", None),
            ("", None),
        ] {
            assert_eq!(of_url(url).as_deref(), host, "{url}");
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
