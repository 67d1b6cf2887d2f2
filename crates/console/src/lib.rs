//! The console: pages for people, served on the admin listener.
//!
//! | to | see |
//! |---|---|
//! | find a page | `routes`, then `pages/` |
//! | see how a request is authenticated | `serve`, `sign_ins`, `throttle` |
//! | change a text | `texts/en.ftl` and `texts/ru.ftl` |
//! | change how it looks | `assets/console.css`, `templates/` |
//!
//! Invariant: pages call the routes of the admin API in process (`Visit::get`, `Visit::send`) with the
//! token of the person who is signed in; the console has no other way to read or change anything.
//! Invariant: nothing but the sign-in page and static assets is served to a request without a valid
//! sign-in, and no form is accepted without its CSRF token.
//! Invariant: text from agents, servers and sessions is escaped by the templates; no template marks
//! anything as safe, and the content security policy allows no inline script or style.
//!
//! Start at [`router`].

mod activity;
mod arrival;
mod assets;
mod chart;
mod console;
mod cookies;
mod fields;
mod flash;
mod items;
mod look;
mod pages;
mod problem;
mod recommended;
mod risk_texts;
mod routes;
mod security_headers;
mod sentences;
mod serve;
mod shell;
mod shown;
mod sign_ins;
mod texts;
mod throttle;
mod visit;

pub use console::{Console, ConsoleSettings};
pub use routes::router;
