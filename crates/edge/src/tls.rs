//! TLS of the listeners: a certificate with its key, and connections with it.
//!
//! The certificate can be replaced while the listeners serve; open connections keep theirs.
//!
//! Invariant: no error, log line or `Debug` output contains any part of a key.
//! Start at [`Certificate::from_pem`]; what listeners read and write is in `tls/stream.rs`.

use std::fmt;
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{Error, ServerConfig};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

mod stream;

use stream::DetachableSocket;
pub(crate) use stream::{DetachedStream, Secure, Stream};

/// The only protocol spoken over TLS.
const HTTP_1_1: &[u8] = b"http/1.1";

/// A certificate with its key.
pub struct Certificate {
    config: Arc<ServerConfig>,
    fingerprint: [u8; 32],
}

/// The certificate of listeners; it can be replaced.
#[derive(Debug, Clone)]
pub struct Tls(Arc<ArcSwap<Certificate>>);

/// Why a certificate cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The certificate is invalid.
    #[error("no usable certificate: {0}")]
    Certificate(String),
    /// The key is invalid.
    #[error("no usable private key: {0}")]
    Key(String),
    /// The key does not belong to the certificate.
    #[error("the key does not belong to the certificate")]
    NotAPair,
}

// === impl Certificate ===

impl Certificate {
    /// Parses a chain of certificates, the gateway's own first, and its private key.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, Unusable> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|error| Unusable::Certificate(explain(&error)))?;
        let Some(first) = chain.first() else {
            return Err(Unusable::Certificate(explain(&PemError::NoItemsFound)));
        };
        let fingerprint = Sha256::digest(first).into();
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|error| Unusable::Key(explain(&error)))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|versions| versions.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|error| match error {
            Error::InconsistentKeys(_) => Unusable::NotAPair,
            Error::InvalidCertificate(why) => Unusable::Certificate(format!("{why:?}")),
            other => Unusable::Key(other.to_string()),
        })?;
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        Ok(Self { config: Arc::new(config), fingerprint })
    }

    /// The SHA-256 of the certificate.
    pub fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }
}

/// Explains an error; the library's text does not say what to do.
fn explain(error: &PemError) -> String {
    match error {
        PemError::NoItemsFound => "it must be PEM, not encrypted".to_owned(),
        other => format!("{other:?}"),
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").finish_non_exhaustive()
    }
}

// === impl Tls ===

impl Tls {
    /// Uses this certificate.
    pub fn new(certificate: Certificate) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(certificate)))
    }

    /// Uses another certificate from the next connection on.
    pub fn set(&self, certificate: Certificate) {
        self.0.store(Arc::new(certificate));
    }

    /// The SHA-256 of the current certificate.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.0.load().fingerprint
    }

    /// The handshake.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<Stream> {
        let config = Arc::clone(&self.0.load().config);
        let secured = TlsAcceptor::from(config).accept(DetachableSocket::new(stream)).await?;
        Ok(Stream::Secure(Box::new(Secure::new(secured))))
    }
}
