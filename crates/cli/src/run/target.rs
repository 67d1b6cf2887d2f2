//! The server of `run`, as a server of a toolgate configuration.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use http::{HeaderValue, Uri};
use serde_json::{Map, Value, json};
use toolgate_config::{Config, Surroundings as _, secret_name};
use toolgate_edge::child::inheritable;

use crate::ad_hoc::{Variables, called, of_command, of_url, server_name};
use crate::args::{DataArgs, RunArgs};
use crate::config_source::{Here, Source};
use crate::data::{announced_config, data_path};
use crate::exit::Usage;
use crate::print;

/// What to run on.
pub(super) struct Target {
    /// The settings of toolgate.yaml, with the server of the command line as the only one.
    pub(super) config: Config,
    pub(super) folder: PathBuf,
    /// The name of the server.
    pub(super) name: String,
}

pub(super) fn find(args: &RunArgs) -> anyhow::Result<Target> {
    let (mut config, folder) = settings(&args.data)?;
    let mut variables = Variables::default();
    let (entry, name) = if let Some(url) = &args.url {
        let host = url.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
        (of_url(url, &args.headers, true, &mut variables)?, host.unwrap_or_default())
    } else {
        let mut entry = of_command(&args.command, &mut variables)?;
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("env".to_owned(), environment(&mut variables));
        }
        (entry, called(&args.command))
    };
    let name = args.name.clone().unwrap_or_else(|| server_name(&name));
    config.servers = parse(&name, &entry, &variables)?.servers;
    Ok(Target { config, folder, name })
}

/// The configuration and the data folder. Without a file of its own, that of the gateway that runs on
/// the folder: both then record arguments alike, and know the same people.
fn settings(args: &DataArgs) -> anyhow::Result<(Config, PathBuf)> {
    let source = Source::find(args.config.as_deref());
    let config = source.load_without_secrets()?;
    let folder = data_path(args.data.as_deref(), &config)?;
    let running = if source.file().is_none() { announced_config(&folder) } else { None };
    match running {
        Some(file) => Ok((Source::find(Some(&file)).load_without_secrets()?, folder)),
        None => Ok((config, folder)),
    }
}

fn parse(name: &str, entry: &Value, variables: &Variables) -> anyhow::Result<Config> {
    let here = std::env::current_dir().context("the current folder cannot be read")?;
    let text = json!({ "version": 1, "servers": { name: entry } }).to_string();
    let loaded = Config::parse(&text, &here.join("run"), variables);
    let loaded = loaded.map_err(|problems| {
        print::problems(&problems);
        anyhow!("the server of the command line cannot be used")
    })?;
    Ok(loaded.config)
}

/// The variables of this process, because an MCP client passes those of its server here. Toolgate's
/// own are left out; those that every child inherits need not be listed.
fn environment(variables: &mut Variables) -> Value {
    let own = |name: &str| name.starts_with("TOOLGATE_");
    let listed = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !own(name) && !inheritable(name))
        .map(|(name, value)| {
            let value =
                if secret_name(&name) { variables.keep(&value) } else { variables.plain(&value) };
            (name, value.into())
        });
    Value::Object(listed.collect::<Map<String, Value>>())
}

/// The header for a token that is given as a reference.
pub(super) fn bearer(reference: &str) -> anyhow::Result<HeaderValue> {
    let token = if let Some(name) = reference.strip_prefix("env:") {
        Here.env(name).with_context(|| format!("the variable `{name}` is not set"))?
    } else if let Some(path) = reference.strip_prefix("file:") {
        let read = Here.read(Path::new(path));
        let bytes = read.with_context(|| format!("cannot read the token in `{path}`"))?;
        String::from_utf8(bytes).context("the token contains invalid characters")?
    } else {
        let why = "`--token` takes a reference, so that no secret is in the list of processes: \
                   env:NAME or file:PATH";
        return Err(Usage(why.to_owned()).into());
    };
    let value = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
    let mut value = value.map_err(|_| anyhow!("the token contains invalid characters"))?;
    value.set_sensitive(true);
    Ok(value)
}
