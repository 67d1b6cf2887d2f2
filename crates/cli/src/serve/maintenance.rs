//! Changes of a data folder while no gateway uses it. Each takes the lock of `serve`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use jiff::Timestamp;
use tokio::runtime::{Builder, Runtime};
use toolgate_audit::{Draft, Hash, RowKind};
use toolgate_config::Config;
use toolgate_control::{LOCAL, LocalMode, STDIO};
use toolgate_session::ShowcaseEntry;
use toolgate_store::{Change, StoredGrant};

use super::{random, sessions, store};
use crate::data::{DataFolder, data_path};

fn runtime() -> anyhow::Result<Runtime> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.context("cannot start the runtime")
}

/// Adds entries to the showcase of the data folder that `serve` would use; the folder, how many were
/// added, and for how many there was no room.
pub(crate) fn take_over(
    data: Option<&Path>,
    config: &Config,
    entries: &[ShowcaseEntry],
) -> anyhow::Result<(PathBuf, usize, usize)> {
    let data = DataFolder::open(data_path(data, config)?, &random::token)?;
    let runtime = runtime()?;
    let (store, _) = store::open(data.path(), &config.audit)?;
    let (new, left_out) = runtime.block_on(async {
        let new = sessions::take_over(&store, entries).await?;
        store.close(Timestamp::now()).await.context("cannot close the audit")?;
        anyhow::Ok(new)
    })?;
    Ok((data.path().to_owned(), new, left_out))
}

/// Accepts the current time in a data folder that no gateway uses.
pub(crate) fn accept_clock(folder: PathBuf) -> anyhow::Result<()> {
    anyhow::ensure!(folder.join("toolgate.db").exists(), "`{}` contains no data", folder.display());
    let data = DataFolder::open(folder, &random::token)?;
    let runtime = runtime()?;
    runtime.block_on(async {
        let (store, _) = store::open(data.path(), &Config::default().audit)?;
        let (before, now) = (store.status().await?.mark, Timestamp::now());
        let mut row = Draft::new(RowKind::Admin, now);
        // A user who can write to the folder has the token of this person.
        row.person = Some("admin".into());
        let why = if before > now {
            format!("accepted the clock: {now:.0}, not {before:.0}")
        } else {
            format!("accepted the clock: {now:.0}; it was not behind")
        };
        row.message = Some(why.into());
        if before > now {
            store.change(Change::AcceptClock, row).await?;
        } else {
            // Windows that have ended must not be reopened.
            store.record(row).await?;
        }
        store.close(Timestamp::now()).await.context("cannot close the audit")
    })
}

/// Creates a grant in a data folder that no gateway uses; its token.
pub(crate) fn create_grant(folder: PathBuf, label: &str, policy: &str) -> anyhow::Result<String> {
    let data = DataFolder::open(folder, &random::token)?;
    let runtime = runtime()?;
    let token = random::token()?;
    let id: [u8; 8] = random::bytes()?;
    runtime.block_on(async {
        let (store, _) = store::open(data.path(), &Config::default().audit)?;
        let is_used = [LOCAL, STDIO].contains(&label)
            || store.snapshot().await?.grants.iter().any(|grant| *grant.label == *label);
        anyhow::ensure!(!is_used, "the label `{label}` is taken; choose another");
        let now = Timestamp::now();
        let row = |message: String| {
            let mut row = Draft::new(RowKind::Admin, now);
            row.person = Some("admin".into());
            row.message = Some(message.into());
            row
        };
        let ended = row("local mode has ended: a grant was created".to_owned());
        store.change(LocalMode::Ended.keep(), ended).await?;
        let grant = StoredGrant {
            id: format!("g-{:016x}", u64::from_be_bytes(id)).into(),
            label: label.into(),
            token: Hash::of(token.as_bytes()),
            identity: None,
            groups: Vec::new(),
            servers: None,
            sessions: None,
            policy: Some(policy.into()),
            created: now,
            expires: None,
            last_use: None,
            revoked: None,
        };
        let made = row(format!("created the grant `{label}`"));
        store.change(Change::PutGrant(Box::new(grant)), made).await?;
        store.close(Timestamp::now()).await.context("cannot close the audit")
    })?;
    Ok(token)
}
