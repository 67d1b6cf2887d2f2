//! `toolgate local enable`: accept calls without a token again.

use http::Method;
use serde_json::json;

use crate::admin_client::AdminClient;
use crate::args::{LocalArgs, LocalVerb};
use crate::exit::Done;
use crate::print;

pub(crate) fn run(args: &LocalArgs) -> anyhow::Result<Done> {
    let LocalVerb::Enable(args) = &args.verb;
    let wish = json!({"enabled": true});
    AdminClient::new(args)?.send(&Method::PUT, "/api/v1/local", Some(&wish))?;
    print::done("local mode is on: calls without a token are accepted from this machine");
    Ok(Done::Ok)
}
