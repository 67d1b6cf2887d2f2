//! The admin API over HTTP, as a program of a person speaks to it.

use std::fs;

use serde_json::Value;

use crate::gate::{Gate, Home};
use crate::wire::{Connection, Reply};

/// A client of the admin API, with or without a token.
pub(crate) struct Api {
    address: String,
    token: Option<String>,
}

impl Api {
    /// The person `admin` of a gateway's data folder.
    pub(crate) fn admin(gate: &Gate) -> Self {
        Self::with(gate, &admin_token(&gate.home))
    }

    pub(crate) fn with(gate: &Gate, token: &str) -> Self {
        Self { address: gate.admin(), token: Some(token.to_owned()) }
    }

    pub(crate) fn anonymous(gate: &Gate) -> Self {
        Self { address: gate.admin(), token: None }
    }

    /// A request, and its answer so far as a head.
    pub(crate) fn begin(&self, method: &str, path: &str, headers: &str, body: &str) -> Connection {
        let Self { address, token } = self;
        let bearer = token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let bearer = bearer.unwrap_or_default();
        let length = body.len();
        let mut connection = Connection::open(address);
        connection.send(
            format!(
                "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{bearer}{headers}\
                 Content-Length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        );
        connection
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
        self.begin(method, &format!("/api/v1/{path}"), "", body).reply()
    }

    /// The JSON of an answer that must have this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16, method: &str, path: &str, body: &str) -> Value {
        let reply = self.ask(method, path, body);
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
        if reply.body.is_empty() { Value::Null } else { reply.json() }
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        self.expect(200, "GET", path, "")
    }

    /// The messages of rows of changes, with their persons.
    pub(crate) fn changes(&self) -> Vec<String> {
        let rows = self.get("audit?limit=1000");
        let rows = rows["items"].as_array().unwrap().iter();
        let admin = rows.filter(|row| row["kind"] == "admin");
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        admin.map(|row| format!("{}: {}", text(&row["person"]), text(&row["message"]))).collect()
    }
}

/// The token of the person `admin`.
pub(crate) fn admin_token(home: &Home) -> String {
    let file = home.path(".local/share/toolgate/admin.token");
    fs::read_to_string(file).unwrap().trim().to_owned()
}
