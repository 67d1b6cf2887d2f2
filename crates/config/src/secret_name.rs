//! Names that are likely to belong to secrets.

/// Whether a header, variable or key of this name is likely to hold a secret.
pub fn secret_name(name: &str) -> bool {
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
}
