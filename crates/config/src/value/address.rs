//! Addresses: listeners, host names, origins, networks.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::number::digits;
use super::text::Scalar;
use crate::problem::code;
use crate::reader::{Read, Reader};
use crate::syntax::Node;

macro_rules! text_schema {
    ($type:ident, $pattern:literal) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

/// The address of a listener: `HOST:PORT`, or `off` = `None`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listener(pub(crate) Option<SocketAddr>);

text_schema!(
    Listener,
    r"^(off|localhost:[0-9]{1,5}|[0-9.]+:[0-9]{1,5}|\[[0-9a-fA-F:.]+\]:[0-9]{1,5})$"
);

impl Read for Listener {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let Scalar(text) = Scalar::read(node, reader)?;
        if text == "off" {
            return Some(Self(None));
        }
        let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        if let Ok(address) = local.as_deref().unwrap_or(&text).parse() {
            return Some(Self(Some(address)));
        }
        let hint = match text.rsplit_once(':') {
            None if digits(&text).is_some() => format!("write `127.0.0.1:{text}`"),
            None => format!("write `HOST:PORT` or `off`: `{text}:4001`"),
            Some(("" | "*", port)) => {
                format!("write `127.0.0.1:{port}` for this machine only, `0.0.0.0:{port}` for all interfaces")
            }
            Some((_, port)) if digits(port).is_none_or(|port| port > 65535) => {
                "a port is a number up to 65535; 0 picks a free one".to_owned()
            }
            Some((host, port)) if host.parse::<Ipv6Addr>().is_ok() => {
                format!("write an IPv6 address in brackets: `[{host}]:{port}`")
            }
            Some(_) => "a listener takes an IP address or `localhost`; list the host names that clients use under `hosts:`".to_owned(),
        };
        let message = format!("`{text}` is not an address to listen on");
        reader.error_hint(code::INVALID_VALUE, node.span, message, hint);
        None
    }
}

/// A name by which clients reach a listener, lower-case.
#[derive(Debug, Clone)]
pub(crate) struct HostName(pub(crate) String);

text_schema!(HostName, r"^[A-Za-z0-9.-]+$");

impl Read for HostName {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let Scalar(text) = Scalar::read(node, reader)?;
        if is_host_name(&text) {
            return Some(Self(text.to_ascii_lowercase()));
        }
        let message = format!("`{text}` is not a host name");
        let hint = "write only the name, without scheme, port, path or `*`: `gate.example.com`";
        reader.error_hint(code::INVALID_VALUE, node.span, message, hint);
        None
    }
}

fn is_host_name(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        })
}

/// An accepted browser origin: scheme, host and port, lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOrigin(String);

impl HttpOrigin {
    /// As a browser sends it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_schema!(HttpOrigin, r"^[a-z][a-z0-9+.-]*://[^/?#@ ]+$");

impl Read for HttpOrigin {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let Scalar(text) = Scalar::read(node, reader)?;
        let lower = text.to_ascii_lowercase();
        let good = lower.split_once("://").is_some_and(|(scheme, host)| {
            !host.is_empty()
                && !host.contains(['/', '?', '#', '@', ' ', '*'])
                && scheme.starts_with(|c: char| c.is_ascii_lowercase())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
        });
        if good {
            return Some(Self(lower));
        }
        let message = format!("`{text}` is not an origin");
        let hint = "scheme, host and, unless usual, port: `https://console.example.com`";
        reader.error_hint(code::INVALID_VALUE, node.span, message, hint);
        None
    }
}

/// A network: `10.0.0.0/8`, `fd00::/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// Whether `address` is in the network. An IPv4-mapped IPv6 address is treated as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()) & mask_v4(self.prefix) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()) & mask_v6(self.prefix) == 0
            }
            _ => false,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(digits(prefix)?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(most);
        (prefix <= most).then_some(Self { address, prefix: u8::try_from(prefix).ok()? })
    }

    /// The network with the bits beyond its prefix cleared.
    fn cleared(self) -> Self {
        let address = match self.address {
            IpAddr::V4(own) => Ipv4Addr::from_bits(own.to_bits() & mask_v4(self.prefix)).into(),
            IpAddr::V6(own) => Ipv6Addr::from_bits(own.to_bits() & mask_v6(self.prefix)).into(),
        };
        Self { address, ..self }
    }
}

fn mask_v4(prefix: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0)
}

fn mask_v6(prefix: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0)
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

text_schema!(Cidr, r"^[0-9a-fA-F:.]+(/[0-9]{1,3})?$");

impl Read for Cidr {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let Scalar(text) = Scalar::read(node, reader)?;
        let Some(network) = Self::parse(&text) else {
            let message = format!("`{text}` is not a network");
            reader.error_hint(
                code::INVALID_VALUE,
                node.span,
                message,
                "write `10.0.0.0/8` or one address",
            );
            return None;
        };
        if network != network.cleared() {
            let message = format!("`{text}` has bits beyond its prefix");
            let hint = format!("did you mean `{}`?", network.cleared());
            reader.error_hint(code::INVALID_VALUE, node.span, message, hint);
            return None;
        }
        Some(network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_what_lies_in_them() {
        for (network, address, inside) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "::1", false),
            ("192.168.1.7", "192.168.1.7", true),
            ("192.168.1.7", "192.168.1.8", false),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::/0", "2001:db8::1", true),
        ] {
            let network = Cidr::parse(network).unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), inside, "{network} {address}");
        }
        for text in ["10.0.0.0/33", "10.0.0/8", "::/129", "x", "10.0.0.0/", "10.0.0.0/-1"] {
            assert_eq!(Cidr::parse(text), None, "{text}");
        }
    }
}
