//! Static files, embedded in the binary.

use std::sync::LazyLock;

use axum::extract::RawPathParams;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
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

/// One file. Browsers ask again each time and get 304 if it is the same.
pub(crate) async fn serve(params: RawPathParams, headers: HeaderMap) -> Response {
    let name = params.iter().next().map(|(_, name)| name).unwrap_or_default();
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return secured((StatusCode::NOT_FOUND, "not found\n").into_response());
    };
    let tag = format!("\"{}\"", *VERSION);
    let is_same = headers.get(header::IF_NONE_MATCH).is_some_and(|known| *known == *tag);
    let mut response = if is_same {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        asset.content.into_response()
    };
    let fixed = [
        (header::CONTENT_TYPE, asset.kind.to_owned()),
        (header::CACHE_CONTROL, "no-cache".to_owned()),
        (header::ETAG, tag),
    ];
    for (name, value) in fixed {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    secured(response)
}
