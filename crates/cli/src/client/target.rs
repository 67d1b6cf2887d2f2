//! The address that a client connects to, and its token.

use std::path::PathBuf;

use anyhow::Context as _;
use http::Method;
use serde_json::{Value, json};
use toolgate_clients::ClientEntry;
use toolgate_control::local_mode::{self, LocalMode};
use toolgate_control::trusted;
use toolgate_store_sqlite::ReadOnlyStore;

use crate::admin_client::AdminClient;
use crate::args::{AdminArgs, ConnectArgs};
use crate::config_source::Source;
use crate::data::{announced, find_data, is_announced};
use crate::listing::text;
use crate::serve;

/// Where tokens of bridges are, in the data folder.
const TOKENS: &str = "clients";
/// Shown in the place of a token that does not exist yet.
const PLACEHOLDER: &str = "<token of the new grant>";

/// What to write.
pub(super) struct Target<'a> {
    args: &'a ConnectArgs,
    url: String,
    folder: PathBuf,
    program: String,
}

pub(super) fn find(args: &ConnectArgs) -> anyhow::Result<Target<'_>> {
    let folder = find_data(args.data.data.as_deref(), args.data.config.as_deref())?;
    let base = match &args.url {
        Some(url) => url.clone(),
        None => address(args, &folder)?,
    };
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix("/mcp").unwrap_or(base);
    let url = match &args.server {
        Some(server) => format!("{base}/mcp/{server}"),
        None => format!("{base}/mcp"),
    };
    let program = std::env::current_exe().context("the path of this program is not known")?;
    Ok(Target { args, url, folder, program: program.display().to_string() })
}

/// The gateway that runs, else the one that the configuration describes.
fn address(args: &ConnectArgs, folder: &std::path::Path) -> anyhow::Result<String> {
    if is_announced(folder) {
        let line: Value = serde_json::from_str(&announced(folder, "--url")?)?;
        if let Some(url) = text(&line, "mcp") {
            return Ok(url.to_owned());
        }
    }
    let config = Source::find(args.data.config.as_deref()).load_without_secrets()?;
    let mcp = config.listen.mcp.context("`listen.mcp` is off; name an address with --url")?;
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{mcp}"))
}

impl Target<'_> {
    pub(super) fn makes_grant(&self) -> bool {
        self.args.grant.is_some()
    }

    /// Whether the gateway refuses calls without a token, as far as its data folder tells.
    pub(super) fn needs_token(&self) -> bool {
        if self.makes_grant() || self.args.url.is_some() {
            return false;
        }
        let config = Source::find(self.args.data.config.as_deref()).load_quietly();
        let config = config.unwrap_or_default();
        let store = ReadOnlyStore::open(&self.folder).ok().flatten();
        let kept = store.and_then(|mut store| {
            Some((store.snapshot().ok()?, store.documents(local_mode::SPACE).ok()?))
        });
        let (snapshot, kept) = kept.unwrap_or_default();
        let kept = kept.first().map(|kept| LocalMode::parse(&kept.json));
        let has_grants = !snapshot.grants.is_empty();
        !local_mode::decide(&config, &config.listen, kept.as_ref(), has_grants).is_on
    }

    /// The entry without a token.
    pub(super) fn shown(&self) -> ClientEntry {
        let file = self.args.grant.as_ref().map(|label| self.token_file(label));
        let token = self.args.grant.as_ref().map(|_| PLACEHOLDER);
        self.entry(token, file)
    }

    /// The entry with the token of a new grant.
    pub(super) fn with_token(&self) -> anyhow::Result<ClientEntry> {
        let Some(label) = &self.args.grant else { return Ok(self.entry(None, None)) };
        let token = self.create_grant(label)?;
        let file = self.token_file(label);
        if self.args.edit.client.needs_bridge() {
            let what = || format!("cannot write `{}`", file.display());
            let folder = file.parent().unwrap_or(&self.folder);
            std::fs::create_dir_all(folder).with_context(what)?;
            trusted::put(&file, format!("{token}\n").as_bytes()).with_context(what)?;
        }
        Ok(self.entry(Some(&token), Some(file)))
    }

    fn entry(&self, token: Option<&str>, file: Option<PathBuf>) -> ClientEntry {
        let words = [self.program.as_str(), "run", "--gateway", &self.url];
        let mut command: Vec<String> = words.map(str::to_owned).into();
        if let Some(file) = file {
            command.extend(["--token".to_owned(), format!("file:{}", file.display())]);
        }
        let authorization = token.map(|token| format!("Bearer {token}"));
        ClientEntry { url: self.url.clone(), authorization, command }
    }

    fn token_file(&self, label: &str) -> PathBuf {
        let plain = |c: char| if c.is_alphanumeric() || "-_".contains(c) { c } else { '-' };
        let name: String = label.chars().map(plain).collect();
        self.folder.join(TOKENS).join(format!("{name}.token"))
    }

    fn create_grant(&self, label: &str) -> anyhow::Result<String> {
        let policy = &self.args.policy;
        if !is_announced(&self.folder) {
            return serve::create_grant(self.folder.clone(), label, policy);
        }
        let admin = AdminArgs { admin: None, data: self.args.data.clone() };
        let client = AdminClient::new(&admin)?;
        let body = json!({"label": label, "policy": policy});
        let made = client.send(&Method::POST, "/api/v1/grants", Some(&body))?;
        Ok(text(&made, "token").context("the gateway returned no token")?.to_owned())
    }
}
