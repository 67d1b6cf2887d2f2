//! `toolgate tool approve`.

use http::Method;
use serde_json::json;

use crate::admin_client::AdminClient;
use crate::args::ToolApproveArgs;
use crate::exit::Done;
use crate::print;

pub(super) fn run(args: &ToolApproveArgs) -> anyhow::Result<Done> {
    let path = format!("{}/approve", super::path_of(&args.tool)?);
    let body = json!({"fingerprint": args.fingerprint});
    AdminClient::new(&args.admin)?.send(&Method::POST, &path, Some(&body))?;
    print::done(&format!("approved the definition of `{}`", args.tool));
    Ok(Done::Ok)
}
