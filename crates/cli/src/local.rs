//! `toolgate local enable`: calls without a token are taken again.

use http::Method;
use serde_json::json;

use crate::admin_client::AdminClient;
use crate::args::{LocalArgs, LocalVerb};
use crate::exit::Done;

pub(crate) fn run(args: &LocalArgs) -> anyhow::Result<Done> {
    let LocalVerb::Enable(args) = &args.verb;
    let wish = json!({"enabled": true});
    AdminClient::new(args)?.send(&Method::PUT, "/api/v1/local", Some(&wish))?;
    Ok(Done::Ok)
}
