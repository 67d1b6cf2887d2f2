//! The real MCP servers and clients of the tests, installed into `target/peers`.
//!
//! The versions are in `tests/peers`: a lock file for npm, exact pins for Python. A stamp with the
//! manifest's text identifies an installed environment, so a second run is instant.
//! Start at [`install`]. Invariant: nothing is installed outside `target/peers`, except Debian
//! packages, and those only as root and if the program is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::{output, run, run_logged};
use crate::report::say;
use crate::{root, target};

/// The oldest Node the servers run on.
const NODE: u32 = 20;
/// How long one installation may take.
const LIMIT: Duration = Duration::from_mins(15);
/// The npm environments: one for the machine's Node, one with a newer Node of its own, one that drives
/// a browser.
const NODES: [&str; 3] = ["node", "node22", "browser"];
/// The Python environments: the clients and the servers need different versions of `mcp`.
const VENVS: [&str; 4] = ["client", "client2", "servers", "zulip"];

/// Where the peers of a kind are installed.
pub(crate) fn folder(kind: &str) -> PathBuf {
    target().join("peers").join(kind)
}

/// A program of one of the Python environments.
pub(crate) fn python(venv: &str, program: &str) -> PathBuf {
    folder(venv).join("bin").join(program)
}

/// The Node that is installed with the peers, if the machine's is too old.
pub(crate) fn node22() -> Result<PathBuf> {
    let machine = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "x64",
    };
    let node = folder("node22").join(format!("node_modules/node-linux-{machine}/bin/node"));
    ensure!(node.exists(), "`{}` does not exist", node.display());
    Ok(node)
}

/// Copies our scripts beside the packages they import: Node looks for those next to the script.
pub(crate) fn copy_scripts() -> Result<()> {
    for kind in NODES {
        for entry in fs::read_dir(sources().join(kind))? {
            let file = entry?.path();
            if file.extension().is_some_and(|extension| extension == "mjs") {
                fs::copy(&file, folder(kind).join(file.file_name().unwrap_or_default()))?;
            }
        }
    }
    Ok(())
}

/// The manifests, drivers and tours in the source tree.
pub(crate) fn sources() -> PathBuf {
    root().join("tests/peers")
}

/// Installs what is missing or was installed from another manifest.
pub(crate) fn install() -> Result<()> {
    let node = need("node", &["nodejs", "npm"], node_version)?;
    let npm = need("npm", &["npm"], || output(Command::new("npm").arg("--version")))?;
    let python = need("python3", &["python3", "python3-venv"], python_version)?;
    let git = need("git", &["git"], || output(Command::new("git").arg("--version")))?;
    let browser =
        need("chromium", &["chromium"], || output(Command::new("chromium").arg("--version")))?;
    say(&format!("node {node}, npm {npm}, {python}, {git}, {browser}"));

    for kind in NODES {
        let manifests =
            ["package.json", "package-lock.json"].map(|file| sources().join(kind).join(file));
        environment(kind, &manifests, &node, |folder| {
            for manifest in &manifests {
                fs::copy(manifest, folder.join(manifest.file_name().unwrap_or_default()))?;
            }
            let mut command = Command::new("npm");
            // Not `ci`: it insists on packages for other machines, which not every registry has.
            command.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]);
            command.current_dir(folder);
            run_logged(&mut command, &folder.join("install.log"), LIMIT)
        })?;
    }
    for venv in VENVS {
        let manifest = sources().join("python").join(venv).with_extension("txt");
        environment(venv, std::slice::from_ref(&manifest), &python, |folder| {
            run_logged(
                Command::new("python3").args(["-m", "venv"]).arg(folder),
                &folder.join("venv.log"),
                LIMIT,
            )?;
            let mut pip = Command::new(folder.join("bin/pip"));
            pip.args(["install", "--disable-pip-version-check", "--no-deps", "-r"]).arg(&manifest);
            run_logged(&mut pip, &folder.join("install.log"), LIMIT)
        })?;
    }
    Ok(())
}

/// Creates the environment `kind` with `fill`, unless its stamp is current.
fn environment(
    kind: &str,
    manifests: &[PathBuf],
    runtime: &str,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let folder = folder(kind);
    let stamp = folder.join("stamp");
    let mut wanted = format!("{runtime}\n");
    for manifest in manifests {
        wanted += &fs::read_to_string(manifest)
            .with_context(|| format!("cannot read `{}`", manifest.display()))?;
    }
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        say(&format!("{kind}: as it should be"));
        return Ok(());
    }
    let start = Instant::now();
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    fill(&folder).with_context(|| format!("cannot install the peers `{kind}`"))?;
    fs::write(stamp, wanted)?;
    say(&format!("{kind}: installed in {:.1} s", start.elapsed().as_secs_f64()));
    Ok(())
}

/// The version of a program, after installing its Debian packages if it is missing.
pub(crate) fn need(
    name: &str,
    packages: &[&str],
    version: impl Fn() -> Result<String>,
) -> Result<String> {
    let found = version();
    let Err(missing) = found else { return found.map(|text| text.trim().to_owned()) };
    let command = format!("apt-get install {}", packages.join(" "));
    if !rustix::process::geteuid().is_root()
        || output(Command::new("apt-get").arg("--version")).is_err()
    {
        bail!("{name} cannot be used: {missing:#}; install it, on Debian with `{command}`");
    }
    say(&format!("{name} cannot be used ({missing:#}), installing it"));
    run(apt().arg("update"))?;
    run(apt().args(["install", "--yes", "--no-install-recommends"]).args(packages))?;
    let found = version().with_context(|| format!("`{command}` did not help"))?;
    Ok(found.trim().to_owned())
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.arg("--quiet").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn node_version() -> Result<String> {
    let version = output(Command::new("node").arg("--version"))?;
    let major = version.trim().trim_start_matches('v').split('.').next().unwrap_or_default();
    match major.parse::<u32>() {
        Ok(major) if major >= NODE => Ok(version),
        _ => bail!("node {} is too old, {NODE} or later is needed", version.trim()),
    }
}

/// Debian packs `venv` apart from `python3`; without it `ensurepip` is missing.
fn python_version() -> Result<String> {
    output(
        Command::new("python3")
            .args(["-c", "import ensurepip, venv, sys; print('python', sys.version.split()[0])"]),
    )
}
