//! Requests of the console: the same routes, called in this process on behalf of a person who is
//! signed in.
//!
//! Invariant: role checks, validation, audit rows and locks are those of the route; there is no second
//! way to change anything.

use std::sync::Arc;

use axum::http::{HeaderMap, Method};
use axum::response::Response;
use bytes::Bytes;
use toolgate_audit::Hash;
use toolgate_control::Person;

use crate::api::{Admin, Ask};
use crate::fault::Fault;
use crate::query::Query;
use crate::route::Route;
use crate::router::MAX_BODY;
use crate::routes::ROUTES;

/// `via` of the rows of such requests.
const CONSOLE: &str = "console";

/// Why a request of the console has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
    /// The token was revoked, replaced or has expired: the person has to sign in again.
    SignedOut,
    /// The route refused it.
    Refused(Fault),
}

impl From<Fault> for Unanswered {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault)
    }
}

impl Admin {
    /// The person with this token, and its SHA-256.
    pub fn sign_in(&self, token: &str) -> Option<(Hash, Arc<Person>)> {
        let hash = Hash::of(token.as_bytes());
        Some((hash, self.person(&hash)?))
    }

    /// The person whom a sign-in link is for; the link stays valid.
    pub fn person_of_link(&self, code: &str) -> Option<Arc<Person>> {
        self.person(&self.sign_in_links.find(code, self.now())?)
    }

    /// The person whom a sign-in link is for, once, and the SHA-256 of the token.
    pub fn sign_in_by_link(&self, code: &str) -> Option<(Hash, Arc<Person>)> {
        let token = self.sign_in_links.take(code, self.now())?;
        Some((token, self.person(&token)?))
    }

    /// Serves a request of the person whose token has this SHA-256. `target` is a path of the API,
    /// with its query.
    pub async fn serve_console(
        self: &Arc<Self>,
        token: Hash,
        method: &Method,
        target: &str,
        body: Bytes,
    ) -> Result<Response, Unanswered> {
        let who = self.person(&token).ok_or(Unanswered::SignedOut)?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (route, params) = find(method, path)
            .ok_or_else(|| Fault::not_found(format!("there is no route `{method} {path}`")))?;
        if !who.may(route.role) {
            let needed = route.role.as_str();
            return Err(Fault::forbidden(format!("this needs the role `{needed}`")).into());
        }
        if body.len() > MAX_BODY {
            return Err(Fault::too_large(MAX_BODY).into());
        }
        let known: Vec<&str> = route.query.iter().map(|(name, _)| *name).collect();
        let query = Query::read(Some(query), &known)?;
        let (admin, headers) = (Arc::clone(self), HeaderMap::new());
        let via = Some(CONSOLE);
        let ask = Ask { admin, who, token, via, params, query, body, headers };
        Ok((route.handle)(ask).await?)
    }
}

/// The route of a path, and its parameters.
fn find(method: &Method, path: &str) -> Option<(&'static Route, Vec<(String, String)>)> {
    let of_method =
        ROUTES.iter().filter(|route| route.method.as_str().eq_ignore_ascii_case(method.as_str()));
    let mut found: Vec<_> =
        of_method.filter_map(|route| Some((route, parameters(route.path, path)?))).collect();
    // A literal segment precedes a parameter.
    found.sort_by_key(|(_, params)| params.len());
    found.into_iter().next()
}

fn parameters(pattern: &str, path: &str) -> Option<Vec<(String, String)>> {
    let (mut names, mut parts) = (pattern.split('/'), path.split('/'));
    let mut params = Vec::new();
    loop {
        match (names.next(), parts.next()) {
            (None, None) => return Some(params),
            (Some(name), Some(part)) => {
                let inner = name.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
                match inner {
                    Some(name) if !part.is_empty() => {
                        params.push((name.to_owned(), decoded(part)?));
                    }
                    None if name == part => {}
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
}

/// A segment of a path without its percent signs.
fn decoded(part: &str) -> Option<String> {
    percent_encoding::percent_decode_str(part).decode_utf8().ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: &Method, path: &str) -> Option<(&'static str, Vec<(String, String)>)> {
        find(method, path).map(|(route, params)| (route.path, params))
    }

    #[test]
    fn a_path_finds_its_route_and_parameters() {
        let id = |value: &str| vec![("id".to_owned(), value.to_owned())];
        let rotate = "/api/v1/grants/{id}/rotate";
        assert_eq!(route(&Method::GET, "/api/v1/grants"), Some(("/api/v1/grants", vec![])));
        let found = route(&Method::POST, "/api/v1/grants/file:a%2Fb%20c/rotate");
        assert_eq!(found, Some((rotate, id("file:a/b c"))));
        assert_eq!(route(&Method::POST, "/api/v1/grants//rotate"), None);
        assert_eq!(route(&Method::POST, "/api/v1/grants/%ff/rotate"), None);
        assert_eq!(route(&Method::GET, "/api/v1/nothing"), None);
        assert_eq!(route(&Method::DELETE, "/api/v1/status"), None);
    }
}
