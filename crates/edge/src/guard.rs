//! The guard: decides by Host and Origin which requests a listener accepts, and rejects a head that
//! readers could parse in different ways.
//!
//! A web page must not be able to reach a gateway on the same machine, neither from its own origin
//! nor by DNS rebinding to a loopback address. So the Host must be a name that only this machine or
//! its operator uses, and an Origin, which only browsers send, must be loopback or configured.
//!
//! Invariant: pure; a request that is not explicitly allowed is rejected.
//! Start at [`Guard::check`]; the table of cases is in `guard/tests.rs`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::header::{
    CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, TRANSFER_ENCODING,
};
use http::{HeaderValue, StatusCode, Uri};
use toolgate_gateway::AuthFailureReason;

#[cfg(test)]
mod tests;

/// The guard of one listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The address of the listener.
    pub bound_to: IpAddr,
    /// Configured host names, lower case.
    pub hosts: Vec<String>,
    /// Configured origins, as `scheme://host[:port]`, lower case.
    pub origins: Vec<String>,
    /// Which origins browsers may have.
    pub browsers: Browsers,
    /// Whether the listener's own pages use `https` only.
    pub https: bool,
}

/// Which origins browsers may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Browsers {
    /// Any loopback origin, and the configured ones.
    Local,
    /// Only pages of this listener itself.
    OwnPages,
}

/// Why a request is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// No Host, or several.
    #[error("the request must have exactly one Host header")]
    HostCount,
    /// The host name is not accepted.
    #[error("this host name is not accepted here; add it to `hosts` in toolgate.yaml")]
    Host,
    /// The target names one host and the Host header another.
    #[error("the request target and the Host header name different hosts")]
    TwoHosts,
    /// Several Origin headers.
    #[error("the request must have at most one Origin header")]
    OriginCount,
    /// The origin is not accepted.
    #[error("pages of this origin are not accepted here; add it to `origins` in toolgate.yaml")]
    Origin,
    /// A header of which readers may see different values.
    #[error("the header {0} must be sent once; nothing of this request was used")]
    Repeated(HeaderName),
    /// Two headers that say where the body ends.
    #[error("the request must not have both Content-Length and Transfer-Encoding")]
    TwoLengths,
}

impl Denied {
    /// The reason under which rejected accesses are counted; `None` if the request is only malformed.
    pub(crate) fn auth_failure(&self) -> Option<AuthFailureReason> {
        match self {
            Self::HostCount | Self::Host | Self::TwoHosts => Some(AuthFailureReason::Host),
            Self::OriginCount | Self::Origin => Some(AuthFailureReason::Origin),
            Self::Repeated(_) | Self::TwoLengths => None,
        }
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Repeated(_) | Self::TwoLengths => StatusCode::BAD_REQUEST,
            _ => StatusCode::FORBIDDEN,
        }
    }
}

/// Headers that have one value and decide something. Who reads `Authorization` and the headers that
/// repeat the body refuses two of them (`agents/head.rs`, `agents/sessionless.rs`).
const SINGLE: [HeaderName; 7] = [
    CONTENT_LENGTH,
    CONTENT_TYPE,
    SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION,
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("mcp-session-id"),
    HeaderName::from_static("toolgate-session"),
];

// === impl Guard ===

impl Guard {
    /// Decides by the request's head.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Denied> {
        let host = only(headers, &HOST).map_err(|()| Denied::HostCount)?;
        let host = host.ok_or(Denied::HostCount)?.to_str().map_err(|_| Denied::Host)?;
        if !self.accepts(name_of(host).ok_or(Denied::Host)?) {
            return Err(Denied::Host);
        }
        // A target in absolute form (`GET http://host/path`) takes precedence over the Host header.
        if let Some(authority) = uri.authority()
            && !authority.as_str().eq_ignore_ascii_case(host)
        {
            return Err(Denied::TwoHosts);
        }
        if let Some(origin) = only(headers, &ORIGIN).map_err(|()| Denied::OriginCount)? {
            let origin = origin.to_str().map_err(|_| Denied::Origin)?;
            self.accepts_origin(origin, host).then_some(()).ok_or(Denied::Origin)?;
        }
        check_single(headers)
    }

    fn accepts(&self, name: Name<'_>) -> bool {
        match name {
            Name::Address(address) => address.is_loopback() || !self.bound_to.is_loopback(),
            Name::Word(word) => {
                word.eq_ignore_ascii_case("localhost")
                    || self.hosts.iter().any(|host| host.eq_ignore_ascii_case(word))
            }
        }
    }

    fn accepts_origin(&self, origin: &str, host: &str) -> bool {
        let Some((scheme, rest)) = origin.split_once("://") else { return false };
        if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return false;
        }
        let is_listed = self.origins.iter().any(|listed| listed.eq_ignore_ascii_case(origin));
        let is_local = match name_of(rest) {
            Some(Name::Address(address)) => address.is_loopback(),
            Some(Name::Word(word)) => word.eq_ignore_ascii_case("localhost"),
            None => false,
        };
        match self.browsers {
            Browsers::Local => is_local || is_listed,
            Browsers::OwnPages => {
                let own = !self.https || scheme.eq_ignore_ascii_case("https");
                own && rest.eq_ignore_ascii_case(host)
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Name<'a> {
    Address(IpAddr),
    Word(&'a str),
}

/// Parses `host[:port]` as strictly as in a URL; `None` for anything unusual.
fn name_of(host: &str) -> Option<Name<'_>> {
    if let Some(rest) = host.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        is_port(port.strip_prefix(':'), port.is_empty()).then_some(())?;
        return address.parse::<Ipv6Addr>().ok().map(|address| Name::Address(address.into()));
    }
    let (name, port) = match host.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (host, None),
    };
    is_port(port, port.is_none()).then_some(())?;
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return Some(Name::Address(address.into()));
    }
    let is_word = !name.is_empty()
        && !name.ends_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    is_word.then_some(Name::Word(name))
}

fn is_port(port: Option<&str>, absent: bool) -> bool {
    absent || port.is_some_and(|port| !port.is_empty() && port.parse::<u16>().is_ok())
}

/// A header that decides something has one value: of two, one reader sees the first and another the
/// last.
fn check_single(headers: &HeaderMap) -> Result<(), Denied> {
    // Most requests repeat nothing.
    if headers.len() != headers.keys_len() {
        let is_single = |name: &&HeaderName| SINGLE.contains(name);
        let is_repeated = |name: &&HeaderName| headers.get_all(*name).iter().nth(1).is_some();
        if let Some(name) = headers.keys().filter(is_single).find(is_repeated) {
            return Err(Denied::Repeated(name.clone()));
        }
    }
    if headers.contains_key(CONTENT_LENGTH) && headers.contains_key(TRANSFER_ENCODING) {
        return Err(Denied::TwoLengths);
    }
    Ok(())
}

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(()),
    }
}
