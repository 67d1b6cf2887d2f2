//! The certificate of the listeners, read from the files that `tls` names.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use toolgate_config::{Config, Tls};
use toolgate_control::trusted;
use toolgate_edge::tls::Certificate;

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
