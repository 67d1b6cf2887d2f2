//! MCP clients: where their configuration is, what an entry looks like, and edits of their files.
//!
//! [`McpClient`] is the table of clients. [`connect`] and [`disconnect`] change the text of a file and
//! nothing else in it: comments, order, line ends and a byte order mark stay. [`servers`] reads the
//! servers of any of these files, in the form of `mcpServers`.
//!
//! Invariant: pure. Files are read and written by the caller.
//! Invariant: a file that cannot be edited without a doubt is refused, not repaired.
//!
//! Start at [`McpClient`], then [`connect`].

mod client;
mod edit;
mod encoding;
mod jsonc;
mod not_edited;
mod secrets;
mod servers;
mod toml;
mod value;

pub use client::{ClientEntry, Format, McpClient, Places};
pub use edit::{connect, disconnect, entry_of, fragment};
pub use encoding::{Encoding, NotUtf8, text_of};
pub use not_edited::NotEdited;
pub use secrets::{SecretPlace, TakenSecret, externalise};
pub use servers::{Found, NotServers, servers};
pub use value::FileValue;
