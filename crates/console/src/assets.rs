//! Static files, embedded in the binary.

use std::sync::LazyLock;

use axum::extract::RawPathParams;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use toolgate_audit::Hash;

use crate::security_headers::secured;

struct Asset {
    name: &'static str,
    kind: &'static str,
    content: &'static str,
}

const ASSETS: &[Asset] = &[
    Asset {
        name: "console.css",
        kind: "text/css; charset=utf-8",
        content: include_str!("../assets/console.css"),
    },
    Asset {
        name: "console.js",
        kind: "text/javascript; charset=utf-8",
        content: include_str!("../assets/console.js"),
    },
    Asset {
        name: "live.js",
        kind: "text/javascript; charset=utf-8",
        content: include_str!("../assets/live.js"),
    },
    Asset {
        name: "builder.js",
        kind: "text/javascript; charset=utf-8",
        content: include_str!("../assets/builder.js"),
    },
    Asset { name: "icon.svg", kind: "image/svg+xml", content: include_str!("../assets/icon.svg") },
];

/// The version of all assets, part of their addresses.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let all: String = ASSETS.iter().map(|asset| asset.content).collect();
    Hash::of(all.as_bytes()).to_string().chars().take(12).collect()
});

/// One file.
pub(crate) async fn serve(params: RawPathParams) -> Response {
    let name = params.iter().next().map(|(_, name)| name).unwrap_or_default();
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return secured((StatusCode::NOT_FOUND, "not found\n").into_response());
    };
    let kind = HeaderValue::from_static(asset.kind);
    secured(([(header::CONTENT_TYPE, kind)], asset.content).into_response())
}
