//! `toolgate policy plan`: what a document would change.

use anyhow::bail;
use http::Method;
use serde_json::{Value, json};
use toolgate_control::visible;

use super::number;
use super::source::Source;
use crate::admin_client::{AdminClient, part};
use crate::args::{ListOutput, OneOutput, PolicyPlanArgs};
use crate::exit::Done;
use crate::listing::{self, text};
use crate::print;

/// The policy that is always there.
const BUILT_IN: &str = "built-in";

const COLUMNS: &[(&str, &str)] =
    &[("GRANT", "grant"), ("TOOL", "tool"), ("NOW", "before"), ("WITH THE DOCUMENT", "after")];

pub(super) fn run(args: &PolicyPlanArgs) -> anyhow::Result<Done> {
    let source = Source::read(&args.file)?;
    let client = AdminClient::new(&args.admin)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => only_policy(&client)?,
    };
    let path = format!("/api/v1/policies/{}/plan", part(&name));
    let plan = client.send_text(&Method::POST, &path, source.text)?;
    let list = |key: &str| plan.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let (differences, resets) = (list("differences"), list("resets"));
    match args.output {
        OneOutput::Json => print::out(&format!("{plan}\n")),
        OneOutput::Table => show(&name, &plan, &differences, &resets),
    }
    let is_same = differences.is_empty() && resets.is_empty();
    Ok(if is_same { Done::Ok } else { Done::Finding })
}

/// The only policy that people wrote.
fn only_policy(client: &AdminClient) -> anyhow::Result<String> {
    let all = client.list("/api/v1/policies")?;
    let written = all.iter().filter(|it| text(it, "source") != Some(BUILT_IN));
    let names: Vec<&str> = written.filter_map(|it| text(it, "name")).collect();
    match names.as_slice() {
        [name] => Ok((*name).to_owned()),
        [] => bail!("there is no policy to compare with; name the new one with --name"),
        _ => bail!("there are several policies; choose one with --name: {}", names.join(", ")),
    }
}

fn show(name: &str, plan: &Value, differences: &[Value], resets: &[Value]) {
    let rows: Vec<Value> = differences.iter().map(row).collect();
    if !rows.is_empty() {
        listing::list(ListOutput::Table, &rows, COLUMNS);
    }
    for reset in resets {
        let of = |key| visible(text(reset, key).unwrap_or("?"));
        print::err(&format!("the counter `{}` / {} starts again\n", of("counter"), of("window")));
    }
    let compared = plan.get("compared").and_then(Value::as_u64).unwrap_or_default();
    let found = number(differences.len(), "difference");
    print::err(&visible(&format!("policy `{name}`: {found} in {compared} decisions\n")));
}

fn row(difference: &Value) -> Value {
    let of = |key| text(difference, key).unwrap_or_default();
    let outlook = |key: &str| {
        let outlook = difference.get(key);
        let list = |name| outlook.and_then(|it| it.get(name)).and_then(Value::as_array);
        let texts = list("limits").into_iter().chain(list("terms")).flatten();
        let effect = outlook.and_then(|it| text(it, "effect")).unwrap_or_default();
        let texts = std::iter::once(effect).chain(texts.filter_map(Value::as_str));
        texts.collect::<Vec<_>>().join(", ")
    };
    json!({
        "grant": text(difference, "grant").filter(|label| !label.is_empty()),
        "tool": format!("{}/{}", of("server"), of("tool")),
        "before": outlook("before"),
        "after": outlook("after"),
    })
}
