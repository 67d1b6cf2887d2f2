//! The endpoint for messages that a server names over HTTP+SSE.
//!
//! Invariant: it has the origin of the configured URL. Otherwise a server could redirect our
//! headers, including keys, to any host.
//! Invariant: messages show only scheme, host and port of a URL; the rest may contain secrets.

use http::Uri;
use url::Url;

use super::{check, failure};

/// Why messages are not sent to the endpoint that a server names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum EndpointError {
    #[error("names an endpoint that is not a valid URL")]
    NotAUrl,
    #[error(
        "names an endpoint at `{there}`, but its `url` is at `{here}`: messages and keys are not \
         sent to another origin"
    )]
    OtherOrigin { there: String, here: String },
    #[error("names an endpoint with a user name or password in it")]
    Credentials,
}

/// The endpoint `named` in an event, as an absolute URL.
pub(super) fn resolve(url: &Uri, named: &[u8]) -> Result<Uri, EndpointError> {
    let base = Url::parse(&url.to_string()).map_err(|_| EndpointError::NotAUrl)?;
    let named = std::str::from_utf8(named).map_err(|_| EndpointError::NotAUrl)?;
    let mut endpoint = base.join(named.trim()).map_err(|_| EndpointError::NotAUrl)?;
    endpoint.set_fragment(None);
    if endpoint.origin() != base.origin() {
        let (there, here) = (endpoint.origin().ascii_serialization(), failure::origin(url));
        return Err(EndpointError::OtherOrigin { there, here });
    }
    let endpoint: Uri = endpoint.as_str().parse().map_err(|_| EndpointError::NotAUrl)?;
    check(&endpoint).map_err(|_| EndpointError::Credentials)?;
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_the_same_origin() {
        let url = "http://127.0.0.1:3000/base/sse?key=secret";
        let cases = [
            ("/messages?session_id=1", "http://127.0.0.1:3000/messages?session_id=1"),
            ("messages/?s=a%20b", "http://127.0.0.1:3000/base/messages/?s=a%20b"),
            ("?s=1", "http://127.0.0.1:3000/base/sse?s=1"),
            ("../up", "http://127.0.0.1:3000/up"),
            (" /spaces \r", "http://127.0.0.1:3000/spaces"),
            ("http://127.0.0.1:3000/m#part", "http://127.0.0.1:3000/m"),
            ("HTTP://127.0.0.1:3000/m", "http://127.0.0.1:3000/m"),
            ("//127.0.0.1:3000/m", "http://127.0.0.1:3000/m"),
        ];
        for (named, expected) in cases {
            let endpoint = resolve(&url.parse().unwrap(), named.as_bytes());
            assert_eq!(endpoint.unwrap().to_string(), expected, "{named}");
        }
        let usual = resolve(&"https://h.example/sse".parse().unwrap(), b"https://h.example:443/m");
        assert_eq!(usual.unwrap().path(), "/m");
    }

    #[test]
    fn other_endpoints_are_refused() {
        let url: Uri = "http://127.0.0.1:3000/sse?key=secret".parse().unwrap();
        let elsewhere = [
            "http://127.0.0.1:3001/m?secret",
            "https://127.0.0.1:3000/secret",
            "http://localhost:3000/m",
            "//evil.example/secret",
            "http://127.0.0.1:3000@evil.example/secret",
            "file:///etc/secret",
        ];
        for named in elsewhere {
            let why = resolve(&url, named.as_bytes()).unwrap_err().to_string();
            assert!(why.contains("not sent to another origin"), "{named}: {why}");
            assert!(!why.contains("secret"), "{named}: {why}");
        }
        for (named, expected) in [
            (&b"http://[::1/"[..], "not a valid URL"),
            (b"\xff\xfe", "not a valid URL"),
            (b"http://user:secret@127.0.0.1:3000/m", "a user name or password"),
        ] {
            let why = resolve(&url, named).unwrap_err().to_string();
            assert!(why.contains(expected) && !why.contains("secret"), "{why}");
        }
    }
}
