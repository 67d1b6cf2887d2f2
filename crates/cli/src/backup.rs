//! `toolgate backup`: a consistent copy of the data folder, with its keys.

use anyhow::{Context as _, bail};

use crate::args::BackupArgs;
use crate::data::{check_folder, find_data};
use crate::exit::Done;
use crate::print;
use crate::waiting::Waiting;

pub(crate) fn run(args: &BackupArgs) -> anyhow::Result<Done> {
    let folder = find_data(args.data.data.as_deref(), args.data.config.as_deref())?;
    check_folder(&folder)
        .with_context(|| format!("the data folder `{}` is not safe to use", folder.display()))?;
    if !folder.join("toolgate.db").exists() {
        bail!("`{}` contains no data", folder.display());
    }
    let to = &args.to;
    let cannot = || format!("cannot copy the data folder to `{}`", to.display());
    let waiting = Waiting::on_terminal("copying and verifying");
    toolgate_store_sqlite::backup(&folder, to).with_context(cannot)?;
    let report = toolgate_store_sqlite::verify(to, Vec::new()).with_context(cannot)?;
    drop(waiting);
    if let Some(bad) = report.first_bad {
        bail!("the copy in `{}` has a broken audit at row {}", to.display(), bad.seq);
    }
    print::done(&format!(
        "copied to {} with {} rows, verified; it holds the keys and the admin token, so keep it private",
        to.display(),
        report.rows
    ));
    Ok(Done::Ok)
}
