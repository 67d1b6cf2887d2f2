//! The data folder: created if it is missing, used by one `serve` at a time.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use toolgate_audit::Hash;
use toolgate_config::Config;
use toolgate_control::trusted;
use toolgate_edge::remote::Client;
use toolgate_os::files::{self, Links};
use toolgate_os::lock;

use crate::config_source::Source;

/// The data folder while this process serves from it.
pub(crate) struct DataFolder {
    path: PathBuf,
    /// Locked while it is open; the system unlocks it when the process ends.
    _lock: File,
}

/// The file with the addresses of the running gateway.
const ANNOUNCED: &str = "serve.json";

/// The published addresses of this gateway; removed when dropped.
pub(crate) struct Announced {
    path: PathBuf,
    line: String,
}

impl Announced {
    /// Publishes another line, if it has changed.
    pub(crate) fn renew(&mut self, folder: &DataFolder, line: &str) {
        if self.line == line {
            return;
        }
        line.clone_into(&mut self.line);
        if let Err(error) = folder.write_private(ANNOUNCED, line) {
            tracing::error!("cannot update serve.json; verbs may not find this gateway: {error:#}");
        }
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, "serve.json was not there");
        }
    }
}

/// The ready line of the gateway that runs on this folder. `flag` is the option that names an address
/// instead.
pub(crate) fn announced(folder: &Path, flag: &str) -> anyhow::Result<String> {
    let path = folder.join(ANNOUNCED);
    let line = check_folder(folder).and_then(|()| trusted::read_text(&path));
    let none = line.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    anyhow::ensure!(
        !none,
        "no gateway runs on the data folder `{}`; start one with `toolgate serve`, or name another \
         folder with --data or an address with {flag}",
        folder.display()
    );
    let line = line.with_context(|| format!("cannot read `{}`", path.display()))?;
    anyhow::ensure!(
        is_served(folder),
        "no gateway runs on the data folder `{}`: the last one was killed or crashed; start it again \
         with `toolgate serve`, or name an address with {flag}",
        folder.display()
    );
    Ok(line)
}

/// The configuration file of the gateway that runs on this folder, if it has one.
pub(crate) fn announced_config(folder: &Path) -> Option<PathBuf> {
    let line: serde_json::Value =
        serde_json::from_str(&announced(folder, "--config").ok()?).ok()?;
    line.get("config")?.as_str().map(PathBuf::from)
}

/// Whether a gateway holds the lock of this folder. Without one, another program may listen where
/// the last gateway did, and must not receive the token.
fn is_served(folder: &Path) -> bool {
    let file = files::open(&folder.join("serve.lock"), Links::Refused);
    file.is_ok_and(|file| lock::try_shared(&file).is_err())
}

/// A client for the gateway whose line this is.
pub(crate) fn client_of(line: &serde_json::Value) -> Client {
    let certificate = line.get("certificate").and_then(serde_json::Value::as_str);
    match certificate.and_then(|hex| Hash::parse(hex).ok()) {
        Some(Hash(fingerprint)) => Client::pinned(fingerprint),
        None => Client::new(),
    }
}

/// Whether a gateway runs on this folder.
pub(crate) fn is_announced(folder: &Path) -> bool {
    folder.join(ANNOUNCED).exists() && is_served(folder)
}

/// The token of the person `admin` of a data folder.
pub(crate) fn read_token(folder: &Path) -> anyhow::Result<String> {
    let path = folder.join("admin.token");
    let text = trusted::read_text(&path)
        .with_context(|| format!("cannot read the admin token in `{}`", path.display()))?;
    Ok(text.trim().to_owned())
}

/// Creates a new secret.
pub(crate) type MakeToken<'a> = &'a dyn Fn() -> anyhow::Result<String>;

impl DataFolder {
    /// Opens the folder, creates what is missing, and locks it.
    pub(crate) fn open(path: PathBuf, make_token: MakeToken<'_>) -> anyhow::Result<Self> {
        share(&path)?;
        let lock = take(&path)?;
        let folder = Self { path, _lock: lock };
        folder.ensure_admin_token(make_token)?;
        Ok(folder)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file that holds the token of the person `admin`.
    pub(crate) fn admin_token(&self) -> PathBuf {
        self.path.join("admin.token")
    }

    /// The token of the person `admin`.
    pub(crate) fn read_admin_token(&self) -> anyhow::Result<String> {
        read_token(&self.path)
    }

    /// Publishes the addresses for verbs that need a running gateway, until dropped.
    pub(crate) fn announce(&self, line: &str) -> anyhow::Result<Announced> {
        self.write_private(ANNOUNCED, line)?;
        Ok(Announced { path: self.path.join(ANNOUNCED), line: line.to_owned() })
    }

    fn ensure_admin_token(&self, make_token: MakeToken<'_>) -> anyhow::Result<()> {
        // A dangling link is replaced.
        if self.admin_token().exists() {
            return Ok(());
        }
        self.write_private("admin.token", &make_token()?)
    }

    fn write_private(&self, name: &str, line: &str) -> anyhow::Result<()> {
        let path = self.path.join(name);
        let written = trusted::put(&path, format!("{line}\n").as_bytes());
        written.with_context(|| format!("cannot write `{}`", path.display()))
    }
}

/// Creates a folder that this process shares with others, if it is missing, and checks it.
pub(crate) fn share(path: &Path) -> anyhow::Result<()> {
    files::create_folders(path)
        .with_context(|| format!("cannot create the data folder `{}`", path.display()))?;
    check_folder(path)
        .with_context(|| format!("the data folder `{}` is not safe to use", path.display()))
}

/// Fails if another user can change the content of a data folder. Missing files are fine.
pub(crate) fn check_folder(folder: &Path) -> io::Result<()> {
    checked(folder)?;
    for name in ["toolgate.db", "toolgate.db-wal", "toolgate.db-shm"] {
        checked(&folder.join(name))?;
    }
    for name in
        ["admin.token", "audit.key", "audit.pub", "hash.key", "serve.lock", "owners", ANNOUNCED]
    {
        checked(&folder.join(name))?;
    }
    Ok(())
}

/// The database must not be opened for the check: closing it would release SQLite's locks.
fn checked(path: &Path) -> io::Result<()> {
    match trusted::check(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        checked => checked,
    }
}

fn take(folder: &Path) -> anyhow::Result<File> {
    let path = folder.join("serve.lock");
    // A link would have its target truncated.
    let mut file = files::open_or_create(&path)
        .with_context(|| format!("cannot open `{}`", path.display()))?;
    if lock::try_exclusive(&file).is_err() {
        let mut pid = String::new();
        file.read_to_string(&mut pid).context("cannot read the pid in `serve.lock`")?;
        bail!(
            "another toolgate (pid {}) serves from the data folder `{}`; stop it, or give this \
             one another folder with --data",
            pid.trim(),
            folder.display()
        );
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()))?;
    Ok(file)
}

/// The data folder as `serve` with the same flags would find it.
pub(crate) fn find_data(data: Option<&Path>, config: Option<&Path>) -> anyhow::Result<PathBuf> {
    match data {
        Some(data) => Ok(data.to_owned()),
        None => data_or_default(Source::find(config).data()?),
    }
}

/// The data folder that the flag or the configuration names, else the default one.
pub(crate) fn data_path(data: Option<&Path>, config: &Config) -> anyhow::Result<PathBuf> {
    data_or_default(data.map(Path::to_owned).or_else(|| config.data.clone()))
}

fn data_or_default(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path);
    }
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    default_path(path("XDG_DATA_HOME"), path("HOME"))
}

/// The default data folder: `$XDG_DATA_HOME/toolgate` or `~/.local/share/toolgate`.
fn default_path(xdg_data_home: Option<PathBuf>, home: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(xdg) = xdg_data_home.filter(|path| path.is_absolute()) {
        return Ok(xdg.join("toolgate"));
    }
    match home.filter(|path| !path.as_os_str().is_empty()) {
        Some(home) => Ok(home.join(".local/share/toolgate")),
        None => bail!("HOME is not set, so there is no default data folder; name one with --data"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_folder_is_private_and_locked() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b");
        let token = || Ok("tg_secret".to_owned());
        let folder = DataFolder::open(path.clone(), &token).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&folder.admin_token()), 0o600);

        let second = DataFolder::open(path.clone(), &token).err().unwrap().to_string();
        assert!(second.contains(&format!("(pid {})", std::process::id())), "{second}");

        let published = folder.announce("{\"ready\":true}").unwrap();
        let announced = path.join("serve.json");
        assert_eq!(fs::read_to_string(&announced).unwrap(), "{\"ready\":true}\n");
        assert_eq!(mode(&announced), 0o600);

        drop(published);
        assert!(!announced.exists(), "removed with the gateway");

        drop(folder);
        let other_token = || Ok("tg_other".to_owned());
        let folder = DataFolder::open(path, &other_token).unwrap();
        let kept = fs::read_to_string(folder.admin_token()).unwrap();
        assert_eq!(kept, "tg_secret\n", "the admin token is created once");
    }

    #[test]
    fn default_paths() {
        let path = |xdg: Option<&str>, home: Option<&str>| {
            default_path(xdg.map(Into::into), home.map(Into::into)).ok()
        };
        assert_eq!(path(Some("/x"), Some("/h")), Some("/x/toolgate".into()));
        assert_eq!(path(Some("relative"), Some("/h")), Some("/h/.local/share/toolgate".into()));
        assert_eq!(path(None, Some("/h")), Some("/h/.local/share/toolgate".into()));
        assert_eq!(path(None, Some("")), None);
        assert_eq!(path(None, None), None);
    }
}
