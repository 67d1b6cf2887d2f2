//! Errors of a request, and whether the server can have seen it.
//!
//! Invariant: `NotSent` only if no byte of the request can have been written; every doubt is
//! `Lost`.
//! Invariant: messages show only scheme, host and port of a URL; the rest may contain secrets.

use std::error::Error;
use std::io;

use http::{StatusCode, Uri};
use hyper_util::client::legacy;
use toolgate_gateway::channel::{RefusedStatus, SendError, StatusClass};

use super::body::ReadError;
use super::checked::NoLongerAllowed;
use super::client::ConnectTimeout;

/// The part of a URL that may be shown.
pub(super) fn origin(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or("http");
    let host = url.host().unwrap_or("?");
    match url.port_u16() {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    }
}

/// What a status that is not an answer means.
pub(super) fn classified(status: StatusCode) -> RefusedStatus {
    let class = match status.as_u16() {
        400 => StatusClass::BadRequest,
        401 | 403 => StatusClass::Credentials,
        404 | 405 => StatusClass::NoEndpoint,
        421 => StatusClass::WrongHost,
        300..=399 => StatusClass::Redirect,
        400..=499 => StatusClass::OtherClientError,
        _ => StatusClass::ServerError,
    };
    RefusedStatus { number: status.as_u16(), class }
}

/// Why there was no response.
pub(super) fn no_response(origin: &str, error: &legacy::Error) -> SendError {
    if error.is_connect() {
        return SendError::NotSent(no_connection(origin, error));
    }
    if find::<NoLongerAllowed>(error).is_some() {
        return SendError::NoLongerAllowed;
    }
    // hyper reports "canceled" and "closed" only for requests that it has not begun to write.
    let unwritten = find::<hyper::Error>(error).is_some_and(|e| e.is_canceled() || e.is_closed());
    if unwritten {
        let what = format!("the connection to {origin} closed before the request was written");
        return SendError::NotSent(what);
    }
    SendError::Lost(broken(origin, error))
}

/// The connection broke after the request was written.
pub(super) fn broken(origin: &str, error: &(dyn Error + 'static)) -> String {
    format!("the connection to {origin} broke before the answer: {}", root(error))
}

/// Why a body or an event was not read to its end.
pub(super) fn read_error(server: &str, origin: &str, limit: usize, error: &ReadError) -> String {
    match error {
        ReadError::TooLarge => {
            format!("`{server}` answered with more than {limit} bytes, the limit for one message")
        }
        ReadError::NotAMessage => {
            format!("`{server}` answered with something that is not a JSON-RPC message")
        }
        ReadError::Broken(error) => broken(origin, error),
    }
}

fn no_connection(origin: &str, error: &(dyn Error + 'static)) -> String {
    if let Some(limit) = find::<ConnectTimeout>(error) {
        return format!("no connection to {origin} {limit}: is the address right?");
    }
    if let Some(tls) = chain(error).find_map(tls_error) {
        return format!(
            "no secure connection to {origin}: {tls}; is it an https server with a certificate \
             that this machine trusts?"
        );
    }
    if chain(error).any(|error| error.to_string() == "dns error") {
        return format!("cannot find the host of {origin}: is the name right?");
    }
    match find::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => {
            format!("connection refused at {origin}: is the server running?")
        }
        Some(io::ErrorKind::TimedOut) => {
            format!("no connection to {origin}: it does not answer; is the address right?")
        }
        _ => format!("cannot connect to {origin}: {}", root(error)),
    }
}

/// An I/O error is not the `source` of its inner error, and TLS errors are nested.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let carried = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.downcast_ref().or_else(|| carried.and_then(|carried| tls_error(carried)))
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    chain(error).find_map(|error| error.downcast_ref::<E>())
}

fn root(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        let cases = [
            ("http://127.0.0.1:6020/mcp?key=secret", "http://127.0.0.1:6020"),
            ("https://user:secret@example.test/secret", "https://example.test"),
            ("http://[::1]:80/", "http://[::1]:80"),
        ];
        for (url, shown) in cases {
            assert_eq!(origin(&url.parse().unwrap()), shown);
        }
    }
}
