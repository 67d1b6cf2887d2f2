//! Starting a process, and saying in people's words why it did not start.
//!
//! Invariant: the environment is empty but for what this module puts there.

use std::io;
use std::path::Path;
use std::process::Stdio;

use process_wrap::tokio::{CommandWrap, ProcessGroup};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::ChildSpec;
use super::keeper::Group;

/// A process that has just been started, with its three pipes.
pub(super) struct Started {
    pub(super) group: Group,
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// Whether a child gets this variable of the gateway's own environment. Tokens and keys live in
/// environments, so everything that programs do not need to run at all stays behind.
pub fn inheritable(name: &str) -> bool {
    const NAMES: [&str; 10] = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "LANG",
        "TZ",
        "TMPDIR",
        "XDG_RUNTIME_DIR",
    ];
    const WINDOWS: [&str; 9] = [
        "SystemRoot",
        "SystemDrive",
        "ComSpec",
        "PATHEXT",
        "TEMP",
        "TMP",
        "USERPROFILE",
        "APPDATA",
        "LOCALAPPDATA",
    ];
    NAMES.contains(&name)
        || name.starts_with("LC_")
        || (cfg!(windows) && WINDOWS.iter().any(|known| known.eq_ignore_ascii_case(name)))
}

/// What a child will see: the inheritable part of the gateway's environment, then its own list.
pub(super) fn environment(
    inherited: impl IntoIterator<Item = (String, String)>,
    listed: &[(String, String)],
) -> Vec<(String, String)> {
    inherited
        .into_iter()
        .filter(|(name, _)| inheritable(name))
        .chain(listed.iter().cloned())
        .collect()
}

/// Starts the process as the leader of a group of its own.
pub(super) fn start(spec: &ChildSpec, environment: &[(String, String)]) -> Result<Started, String> {
    let mut command = CommandWrap::with_new(&spec.command, |command| {
        command
            .args(&spec.args)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(cwd) = &spec.cwd {
            command.current_dir(cwd);
        }
    });
    command.wrap(ProcessGroup::leader());
    let mut child = command.spawn().map_err(|error| explain(spec, environment, &error))?;
    let pipes = (child.stdin().take(), child.stdout().take(), child.stderr().take());
    let group = Group::new(child);
    match pipes {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Started { group, stdin, stdout, stderr }),
        _ => Err(format!("cannot start `{}`: its pipes are missing", spec.server)),
    }
}

/// The operating system says only "not found"; this says what, where, and what to do.
fn explain(spec: &ChildSpec, environment: &[(String, String)], error: &io::Error) -> String {
    let ChildSpec { server, command, cwd, .. } = spec;
    if let Some(cwd) = cwd
        && !cwd.is_dir()
    {
        return format!(
            "cannot start `{server}`: the folder `{}` does not exist; create it or correct `cwd`",
            cwd.display()
        );
    }
    let why = match error.kind() {
        io::ErrorKind::NotFound if command.contains('/') => {
            let path = cwd.as_deref().unwrap_or(Path::new("")).join(command);
            if path.exists() {
                format!(
                    "`{command}` exists, but the program that its first line names does not; \
                     install that program"
                )
            } else {
                format!("there is no file `{}`; correct `command` or `cwd`", path.display())
            }
        }
        io::ErrorKind::NotFound => format!(
            "no command `{command}` in {}; install it or write its full path",
            searched(environment)
        ),
        io::ErrorKind::PermissionDenied => format!(
            "`{command}` may not be executed (permission denied); make the file executable \
             (`chmod +x`) and its folder readable for the gateway's user"
        ),
        _ => format!("`{command}`: {error}"),
    };
    format!("cannot start `{server}`: {why}")
}

fn searched(environment: &[(String, String)]) -> String {
    // The last entry wins, as it does when the environment is built.
    match environment.iter().rev().find(|(name, _)| name == "PATH") {
        Some((_, path)) => format!("PATH (`{path}`)"),
        None => "the system's default folders (the child has no PATH)".to_owned(),
    }
}
