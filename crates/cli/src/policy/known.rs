//! The servers and tools of a running gateway, which policies are checked against.

use std::ffi::OsString;

use serde_json::Value;
use toolgate_policy::{Class, Known, KnownTool};

use crate::admin_client::{AdminClient, part};
use crate::args::{AdminArgs, CheckArgs, DataArgs};
use crate::data::{find_data, is_announced};
use crate::print;

/// What the gateway that `args` names knows; with a grant, what that can reach. Nothing if no gateway
/// is named, or if none runs on the data folder.
pub(super) fn of(args: &CheckArgs) -> anyhow::Result<Known> {
    let grant = args.grant.as_deref();
    if grant.is_none() && args.data.is_none() && args.admin.is_none() {
        return Ok(Known::default());
    }
    // The variables alone do not select a gateway; with one of the options they name it.
    let data = args.data.clone().or_else(|| variable("TOOLGATE_DATA").map(Into::into));
    let config = variable("TOOLGATE_CONFIG").map(Into::into);
    let address = args.admin.clone().or_else(|| variable("TOOLGATE_ADMIN")?.into_string().ok());
    let admin = &AdminArgs { admin: address, data: DataArgs { config, data } };
    if admin.admin.is_none() {
        let folder = find_data(admin.data.data.as_deref(), admin.data.config.as_deref())?;
        if grant.is_none() && !is_announced(&folder) {
            let folder = folder.display();
            print::err(&format!("no gateway runs on {folder}; tool names are not checked\n"));
            return Ok(Known::default());
        }
    }
    let query = grant.map(|grant| format!("?grant={}", part(grant))).unwrap_or_default();
    let answer = AdminClient::new(admin)?.get(&format!("/api/v1/known_tools{query}"))?;
    let list = |key: &str| answer.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let texts = |key: &str| -> Vec<String> {
        list(key).iter().filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    let tools = list("tools").iter().filter_map(tool).collect();
    Ok(Known { servers: texts("servers"), tools: Some(tools), unlisted: texts("unlisted") })
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn tool(item: &Value) -> Option<KnownTool> {
    let text = |key: &str| item.get(key)?.as_str().map(str::to_owned);
    let class = Class::parse(&text("class")?)?;
    Some(KnownTool { server: text("server")?, name: text("name")?, class })
}
