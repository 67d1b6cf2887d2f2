//! The admin API: what people and their programs may ask and change over HTTP.
//!
//! One table (`routes.rs`) says of every route its method, path, role, and what goes in and out;
//! the router, the check of roles and the OpenAPI document are made of it, so that they cannot
//! differ. Handlers are under `handle/`, by what they are about.
//!
//! Invariant: no handler runs before its caller is known as a person with the role of the route;
//! the token of a grant is nobody's here.
//! Invariant: a change is written in the audit, with who made it, in the transaction that makes it;
//! it is in force before the answer says so.
//! Invariant: no secret is ever answered but a new token, once, to whoever made it.
//!
//! Start at [`Admin`] and [`router`].

mod api;
mod fault;
mod handle;
mod openapi;
mod query;
mod reply;
mod route;
mod router;
mod routes;
mod secret;
mod streams;

pub use api::{Admin, Given, Sessions};
pub use fault::{Fault, Flaw};
pub use router::router;
pub use routes::openapi;
pub use secret::token;
