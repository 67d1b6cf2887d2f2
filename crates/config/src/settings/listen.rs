//! `listen`, `tls`: the listeners.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use crate::finding::Span;
use crate::problem::code;
use crate::reader::{At, Reader, section};
use crate::surroundings::TlsFault;
use crate::value::{Listener, Text, read_bytes};

/// Where toolgate listens; `None` is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Agents, MCP over HTTP.
    pub mcp: Option<SocketAddr>,
    /// Sessions, WebSocket.
    pub sessions: Option<SocketAddr>,
    /// Admin API and metrics, for people.
    pub admin: Option<SocketAddr>,
    /// Additional address that serves only `/metrics`.
    pub metrics: Option<SocketAddr>,
}

/// Certificate and key of the listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The certificate chain, PEM.
    pub cert: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
}

section! {
    /// Where toolgate listens: `HOST:PORT` with an IP address or `localhost` (IPv6 in brackets), or `off`. Port 0 picks a free port.
    #[schemars(rename = "Listen")]
    struct RawListen {
        /// Agents: MCP over HTTP.
        #[schemars(extend("default" = "127.0.0.1:4001"))]
        mcp: Listener,
        /// Sessions: WebSocket.
        #[schemars(extend("default" = "127.0.0.1:4000"))]
        sessions: Listener,
        /// Admin API and metrics, for people.
        #[schemars(extend("default" = "127.0.0.1:4002"))]
        admin: Listener,
        /// Additional address that serves only `/metrics`.
        #[schemars(extend("default" = "off"))]
        metrics: Listener,
    }
}

section! {
    foreign = &[("certificate", "did you mean `cert`?"), ("private_key", "did you mean `key`?")];
    /// TLS of the listeners. The files are reloaded when they change, and on SIGHUP.
    #[schemars(rename = "Tls")]
    struct RawTls {
        /// File with the certificate chain in PEM, toolgate's own certificate first.
        #[schemars(required)]
        cert: Text,
        /// File with the private key in PEM, not encrypted.
        #[schemars(required)]
        key: Text,
    }
}

impl RawListen {
    /// The listeners that the file names.
    pub(crate) fn places(&self) -> Vec<(&'static str, Span)> {
        let all = [
            ("mcp", &self.mcp),
            ("sessions", &self.sessions),
            ("admin", &self.admin),
            ("metrics", &self.metrics),
        ];
        all.into_iter().filter_map(|(name, at)| Some((name, at.as_ref()?.span))).collect()
    }

    pub(crate) fn lower(self, reader: &mut Reader<'_>) -> Listen {
        let usual = |port| Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let mut taken = Vec::new();
        Listen {
            mcp: lower_one("mcp", self.mcp, usual(4001), &mut taken, reader),
            sessions: lower_one("sessions", self.sessions, usual(4000), &mut taken, reader),
            admin: lower_one("admin", self.admin, usual(4002), &mut taken, reader),
            metrics: lower_one("metrics", self.metrics, None, &mut taken, reader),
        }
    }
}

/// The address of one listener, which must differ from those before it.
fn lower_one(
    name: &'static str,
    written: Option<At<Listener>>,
    usual: Option<SocketAddr>,
    taken: &mut Vec<(SocketAddr, &'static str)>,
    reader: &mut Reader<'_>,
) -> Option<SocketAddr> {
    let span = written.as_ref().map(|listener| listener.span);
    let address = written.map_or(usual, |listener| listener.value.0)?;
    if let (Some((_, other)), Some(span)) = (taken.iter().find(|(a, _)| *a == address), span) {
        let message = format!("`{address}` is already used by `{other}`");
        reader.error_hint(code::NOT_UNIQUE, span, message, "give each listener its own port");
    }
    if address.port() != 0 {
        taken.push((address, name));
    }
    Some(address)
}

impl RawTls {
    pub(crate) fn lower(self, span: Span, reader: &mut Reader<'_>) -> Option<Tls> {
        let cert = reader.require(self.cert, "cert", span, &self.unreadable);
        let key = reader.require(self.key, "key", span, &self.unreadable);
        let mut read = |file: &At<Text>| read_bytes(&file.value.0, file.span, reader);
        let cert_read = cert.as_ref().and_then(&mut read);
        let key_read = key.as_ref().and_then(read);
        let (cert, key) = (cert?, key?);
        if let Err(fault) = reader.surroundings.check_tls(&cert_read?, &key_read?) {
            let (file, why, hint) = match fault {
                TlsFault::Cert(why) => (&cert, why, "give the certificate chain as PEM"),
                TlsFault::Key(why) => (&key, why, "give the private key of `cert` as PEM"),
            };
            let message = format!("the file `{}` cannot be used: {why}", file.value.0);
            reader.error_hint(code::INVALID_VALUE, file.span, message, hint);
            return None;
        }
        Some(Tls { cert: reader.path(cert.value.0), key: reader.path(key.value.0) })
    }
}
