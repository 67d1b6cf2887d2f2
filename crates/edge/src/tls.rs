//! TLS of the listeners: a certificate with its key, and connections under it.
//!
//! Another certificate may be put in its place while the listeners serve; connections that are
//! open keep theirs.
//!
//! Invariant: nothing of a key is ever in an error, in a log or in `Debug`.
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

/// All that is spoken under it.
const HTTP_1_1: &[u8] = b"http/1.1";

/// A certificate with its key, ready to be shown.
pub struct Certificate {
    config: Arc<ServerConfig>,
    fingerprint: [u8; 32],
}

/// The certificate of some listeners; another may be put in its place.
#[derive(Debug, Clone)]
pub struct Tls(Arc<ArcSwap<Certificate>>);

/// Why a certificate cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// What was given as a certificate is none.
    #[error("there is no usable certificate in it: {0}")]
    Certificate(String),
    /// What was given as a key is none.
    #[error("there is no usable private key in it: {0}")]
    Key(String),
    /// Each is good, but not with the other.
    #[error("the key is not that of the certificate")]
    NotAPair,
}

// === impl Certificate ===

impl Certificate {
    /// Reads a chain of certificates, that of the gateway first, and its private key.
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

    /// The SHA-256 of the certificate itself.
    pub fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }
}

/// In our words; those of the library say what it looked for and not what to do.
fn explain(error: &PemError) -> String {
    match error {
        PemError::NoItemsFound => {
            "nothing of the kind stands in it (PEM, not encrypted)".to_owned()
        }
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
    /// With this certificate for now.
    pub fn new(certificate: Certificate) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(certificate)))
    }

    /// With another one from the next connection on.
    pub fn set(&self, certificate: Certificate) {
        self.0.store(Arc::new(certificate));
    }

    /// The SHA-256 of the certificate that is shown now.
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
