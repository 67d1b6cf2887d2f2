//! The admin API: what people and their programs may read and change over HTTP.
//!
//! One table (`routes.rs`) defines method, path, role, input and output of every route. The router,
//! the role check and the OpenAPI document are generated from it, so that they cannot differ.
//! Handlers are under `handle/`, by subject.
//!
//! Invariant: no handler runs before the caller is identified as a person with the role of the
//! route; the token of a grant is never accepted here. The console calls the same routes in process
//! (`in_process.rs`), with the same checks.
//! Invariant: a change and its audit row, with the name of the person, are written in one
//! transaction; the change is active before the answer is sent.
//! Invariant: no secret is ever returned except a new token, once, to the person who created it.
//!
//! Start at [`Admin`] and [`router`].

mod api;
mod fault;
mod handle;
mod in_process;
mod openapi;
mod query;
#[cfg(test)]
mod reference;
mod reply;
mod route;
mod router;
mod routes;
mod secret;
mod sign_in_links;
mod streams;
mod suggest;

pub use api::{Admin, Given, Sessions, Verify};
pub use fault::{Fault, Flaw};
pub use in_process::Unanswered;
pub use router::router;
pub use routes::openapi;
pub use secret::token;
