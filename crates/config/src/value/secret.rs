//! Values that must never be shown.

use std::fmt;

/// A value that prints as `***` and is not serialisable.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself. Whoever calls this keeps it out of logs, errors and metrics.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Whether a header, variable or key of this name is likely to hold a secret.
pub(crate) fn secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    ["key", "token", "secret", "password", "passwd", "auth", "cookie", "credential"]
        .iter()
        .any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_recognised() {
        for name in ["Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "GITHUB_TOKEN"]
        {
            assert!(secret_name(name), "{name}");
        }
        for name in ["Accept", "User-Agent", "PATH", "NODE_ENV", "X-Tenant"] {
            assert!(!secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_secret_does_not_print() {
        let secret = Secret::new("hunter2");
        assert_eq!(
            format!("{secret} {secret:?} {:#?}", Some(&secret)),
            "*** *** Some(\n    ***,\n)"
        );
        assert_eq!(secret.expose(), "hunter2");
    }
}
