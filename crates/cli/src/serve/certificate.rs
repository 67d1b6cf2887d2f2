//! The certificate of the listeners: read from its files, checked where the configuration is read,
//! and read again when the files change.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use toolgate_config::{Config, Process, Surroundings, Tls, TlsFault};
use toolgate_edge::tls::{Certificate, Unusable};

use crate::trusted;

/// This process, its files as far as no other user can write to them, and what it knows of
/// certificates.
pub(crate) struct Here;

impl Surroundings for Here {
    fn env(&self, name: &str) -> Option<String> {
        Process.env(name)
    }

    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        trusted::read(path)
    }

    fn check_tls(&self, cert: &[u8], key: &[u8]) -> Result<(), TlsFault> {
        let Err(fault) = Certificate::from_pem(cert, key) else { return Ok(()) };
        let why = fault.to_string();
        Err(match fault {
            Unusable::Certificate(_) => TlsFault::Cert(why),
            Unusable::Key(_) | Unusable::NotAPair => TlsFault::Key(why),
        })
    }
}

/// The certificate that `tls` names, if there is one.
pub(crate) fn load(config: &Config) -> anyhow::Result<Option<Certificate>> {
    let Some(Tls { cert, key }) = &config.tls else { return Ok(None) };
    let read = |file: &Path| {
        trusted::read(file).with_context(|| format!("cannot read the file `{}`", file.display()))
    };
    let certificate = Certificate::from_pem(&read(cert)?, &read(key)?);
    let certificate = certificate.map_err(|why| anyhow!("`tls` cannot be used: {why}"))?;
    Ok(Some(certificate))
}
