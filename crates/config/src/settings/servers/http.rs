//! Servers on the network.

use std::fmt;

use http::Uri;

use super::{RawServer, TransportWord, quotable};
use crate::finding::Span;
use crate::problem::code;
use crate::reader::{At, Reader};
use crate::secret_name::secret_name;
use crate::value::{Expanded, Scalar, Scope, Secret, Text, expand};

/// A server on the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Its address.
    pub url: ServerUrl,
    /// Headers for every request, in the order of the file.
    pub headers: Vec<(String, Secret)>,
    /// Its HTTP transport, if configured.
    pub flavour: HttpFlavour,
}

/// The HTTP transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpFlavour {
    /// Detected: streamable HTTP, else legacy HTTP+SSE.
    Unknown,
    /// `type: http`.
    Streamable,
    /// `type: sse`.
    Sse,
}

/// An `http` or `https` URL with a host, without user data and fragment. Displayed without its
/// query, which may contain a key.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    full: String,
    shown: String,
}

impl ServerUrl {
    /// The complete URL, with its query.
    pub fn expose(&self) -> &str {
        &self.full
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown)
    }
}

impl RawServer {
    pub(super) fn lower_http(
        &mut self,
        url: &At<Text>,
        word: Option<TransportWord>,
        reader: &mut Reader<'_>,
    ) -> Option<Http> {
        let address = expand(&url.value.0, url.span, Scope::Value, reader)
            .and_then(|expanded| check_url(&expanded, url.span, reader));
        let headers = self.lower_headers(reader);
        let flavour = match word {
            Some(TransportWord::Http) => HttpFlavour::Streamable,
            Some(TransportWord::Sse) => HttpFlavour::Sse,
            Some(TransportWord::Stdio) | None => HttpFlavour::Unknown,
        };
        Some(Http { url: address?, headers: headers?, flavour })
    }

    fn lower_headers(&mut self, reader: &mut Reader<'_>) -> Option<Vec<(String, Secret)>> {
        let entries = self.headers.take().map(|at| at.value.entries).unwrap_or_default();
        let (mut lowered, mut complete) = (Vec::<(String, Secret)>::new(), true);
        for (name, value) in entries {
            if lowered.iter().any(|(other, _)| other.eq_ignore_ascii_case(&name.value)) {
                let message = format!("the header `{}` is defined twice", name.value);
                let hint = "header names are case-insensitive: keep one";
                reader.error_hint(code::DUPLICATE_KEY, name.span, message, hint);
            }
            match lower_header(name, &value, reader) {
                Some(header) => lowered.push(header),
                None => complete = false,
            }
        }
        complete.then_some(lowered)
    }
}

/// Headers that frame a message: toolgate sets them itself.
const FRAMING: [&str; 7] = [
    "connection",
    "content-length",
    "content-type",
    "host",
    "mcp-session-id",
    "mcp-protocol-version",
    "transfer-encoding",
];

fn lower_header(
    name: At<String>,
    value: &At<Scalar>,
    reader: &mut Reader<'_>,
) -> Option<(String, Secret)> {
    if http::HeaderName::from_bytes(name.value.as_bytes()).is_err() {
        let message = format!("`{}…` is not a valid name of a header", quotable(&name.value));
        reader.error_hint(
            code::INVALID_NAME,
            name.span,
            message,
            "write `Name: value`, the name in letters, digits and `-`",
        );
        return None;
    }
    if FRAMING.iter().any(|framing| name.value.eq_ignore_ascii_case(framing)) {
        let message = format!("`{}` is set by toolgate itself", name.value);
        reader.error_hint(code::INVALID_NAME, name.span, message, "remove it");
        return None;
    }
    let expanded = expand(&value.value.0, value.span, Scope::Value, reader)?;
    if secret_name(&name.value) && !expanded.has_reference() {
        let message = format!(
            "the value of the header `{}` must not be written in the file itself",
            name.value
        );
        let hint = "write \"env:NAME\" or \"file:PATH\", or a reference inside: \"Bearer ${NAME}\"";
        reader.error_hint(code::LITERAL_SECRET, value.span, message, hint);
        return None;
    }
    if expanded.has_reference() && expanded.expose().trim().is_empty() {
        let message = format!("the value of the header `{}` is empty", name.value);
        let hint = "set the variable or file it refers to";
        reader.error_hint(code::UNRESOLVED, value.span, message, hint);
        return None;
    }
    if http::HeaderValue::from_str(expanded.expose()).is_err() {
        let message = format!(
            "the value of the header `{}` has characters that are not allowed in a header",
            name.value
        );
        reader.error_hint(
            code::INVALID_VALUE,
            value.span,
            message,
            "a header is one line of visible text",
        );
        return None;
    }
    Some((name.value, Secret::new(expanded.expose())))
}

/// The URL, if it is valid. Reports do not quote it: it may contain a key.
fn check_url(url: &Expanded, span: Span, reader: &mut Reader<'_>) -> Option<ServerUrl> {
    let full = url.expose();
    let mut refuse = |message: &str, hint: &str| {
        reader.error_hint(code::INVALID_VALUE, span, message, hint);
        None
    };
    if full.contains('#') {
        return refuse("a URL must not have a fragment (`#…`)", "remove it");
    }
    let Ok(uri) = full.parse::<Uri>() else {
        return refuse("not an address", "write `https://HOST/PATH`");
    };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return refuse("the URL has no scheme", "write `https://HOST/PATH` or `http://HOST/PATH`");
    };
    if scheme != "http" && scheme != "https" {
        return refuse(
            "only `http` and `https` URLs are supported",
            "use `command` for a program to start",
        );
    }
    if authority.as_str().contains('@') {
        return refuse(
            "a URL must not contain a user or password",
            "use `headers: { Authorization: \"env:NAME\" }`",
        );
    }
    if authority.host().is_empty() {
        return refuse("an address needs a host", "write `https://HOST/PATH`");
    }
    warn_of_literal_query(url, &uri, span, reader);
    let query = if uri.query().is_some() { "?***" } else { "" };
    let shown = format!("{scheme}://{authority}{}{query}", uri.path());
    Some(ServerUrl { full: full.to_owned(), shown })
}

fn warn_of_literal_query(url: &Expanded, uri: &Uri, span: Span, reader: &mut Reader<'_>) {
    let parameters = uri.query().unwrap_or_default().split('&');
    let secret =
        parameters.filter_map(|pair| pair.split_once('=')).find(|(name, _)| secret_name(name));
    if let Some((name, _)) = secret.filter(|_| !url.has_reference()) {
        let message = format!("`{name}` looks like a secret and is written in the file itself");
        let hint = format!("write `{name}=${{NAME}}` and set the variable NAME");
        reader.warn(code::LITERAL_SECRET, span, message, hint);
    }
}
