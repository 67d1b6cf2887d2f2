//! A route: one row of the table in `routes.rs`.

use axum::routing::MethodFilter;
use futures_util::future::BoxFuture;
use schemars::{Schema, SchemaGenerator};
use toolgate_control::Role;

use crate::api::Ask;
use crate::reply::Answer;

/// One route.
pub(crate) struct Route {
    pub(crate) method: Verb,
    pub(crate) path: &'static str,
    /// The least role.
    pub(crate) role: Role,
    /// A one-line summary.
    pub(crate) summary: &'static str,
    /// Query parameters and their descriptions.
    pub(crate) query: &'static [(&'static str, &'static str)],
    pub(crate) body: Option<Body>,
    /// The statuses of a success; the usual one first.
    pub(crate) statuses: &'static [u16],
    /// The shape of the body of a success.
    pub(crate) answer: Option<Shape>,
    pub(crate) handle: fn(Ask) -> BoxFuture<'static, Answer>,
}

/// The request body.
pub(crate) enum Body {
    /// JSON of this shape.
    Json(Shape),
    /// A policy document, JSON or YAML.
    Document,
}

/// Generates a schema.
pub(crate) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// The methods in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    pub(crate) fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Put => MethodFilter::PUT,
            Self::Patch => MethodFilter::PATCH,
            Self::Delete => MethodFilter::DELETE,
        }
    }

    /// The name in OpenAPI.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}
