//! The paths of OAuth discovery and registration. toolgate has no authorization server; clients that
//! look for one after a 401 show this text to their users.

use http::{Response, StatusCode};
use serde_json::json;

use super::reply;
use crate::body::ResponseBody;

/// Paths that may continue with `/` and a resource.
const METADATA: [&str; 3] = [
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
];
const ENDPOINTS: [&str; 3] = ["/register", "/authorize", "/token"];

/// Whether a client requests this path for OAuth.
pub(super) fn is_path(path: &str) -> bool {
    let is_metadata = |known: &str| {
        path.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    METADATA.into_iter().any(is_metadata) || ENDPOINTS.contains(&path)
}

/// 404 with the error body of OAuth (RFC 6749, RFC 7591).
pub(super) fn not_supported() -> Response<ResponseBody> {
    let body = json!({
        "error": "access_denied",
        "error_description": "toolgate does not use OAuth. Send the token of a grant with every \
            request: `Authorization: Bearer <token>`. Ask the operator for a token (`toolgate grant \
            create`); in Claude Code: claude mcp add --transport http NAME URL --header \
            \"Authorization: Bearer <token>\"",
    });
    reply::json(StatusCode::NOT_FOUND, bytes::Bytes::from(body.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_oauth_are_recognised() {
        for path in [
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resource/mcp/files",
            "/.well-known/oauth-authorization-server/mcp",
            "/.well-known/openid-configuration",
            "/register",
        ] {
            assert!(is_path(path), "{path}");
        }
        for path in
            ["/", "/mcp", "/.well-known", "/.well-known/oauth-protected-resources", "/registers"]
        {
            assert!(!is_path(path), "{path}");
        }
    }
}
