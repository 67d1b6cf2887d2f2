//! The address of a syslog daemon.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::text::Text;
use crate::problem::code;
use crate::reader::{Read, Reader};
use crate::syntax::Node;

/// A syslog daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Syslog {
    /// A datagram socket of this machine.
    Socket(PathBuf),
    /// Another machine, by UDP.
    Udp(SocketAddr),
}

/// The socket of the daemon of this machine.
const LOCAL: &str = "/dev/log";
/// The default port.
const PORT: u16 = 514;

impl Read for Syslog {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let Text(text) = Text::read(node, reader)?;
        if text == "local" {
            return Some(Self::Socket(LOCAL.into()));
        }
        if text.starts_with('/') {
            return Some(Self::Socket(text.into()));
        }
        let udp = text.strip_prefix("udp://").and_then(|host| {
            let with_port = || format!("{host}:{PORT}").parse().ok();
            host.parse().ok().or_else(with_port)
        });
        if let Some(address) = udp {
            return Some(Self::Udp(address));
        }
        let message = format!("`{text}` is not an address of syslog");
        let hint = "write `local` for this machine's own, the absolute path of a socket, or \
                    `udp://ADDRESS:514` with an IP address";
        reader.error_hint(code::INVALID_VALUE, node.span, message, hint);
        None
    }
}

impl JsonSchema for Syslog {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Syslog".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^(local|/.+|udp://[0-9a-fA-F:.\[\]]+)$" })
    }
}
