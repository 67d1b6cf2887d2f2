//! Starting a process, and explaining why it did not start.
//!
//! Invariant: the environment is empty except for what this module adds.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use toolgate_os::files;
use toolgate_os::group;

use super::ChildSpec;
use super::supervisor::Group;

/// A process that has just been started, with its three pipes.
pub(super) struct Started {
    pub(super) group: Group,
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// Whether a child receives this variable of the gateway's environment. Environments hold tokens
/// and keys, so only what programs need to run at all is passed on.
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

/// The environment of a child: the inheritable part of the gateway's, then its own.
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

/// Creates the working directory of a child that has one of its own.
pub(super) fn create_folder(spec: &ChildSpec) -> Result<(), StartError> {
    let Some(cwd) = &spec.cwd else { return Ok(()) };
    files::create_folders(cwd).map_err(|error| StartError {
        server: spec.server.clone(),
        why: SpawnError::FolderNotCreated { folder: cwd.clone(), error: error.to_string() },
    })
}

/// Starts the process as the leader of its own group.
pub(super) fn start(
    spec: &ChildSpec,
    environment: &[(String, String)],
) -> Result<Started, StartError> {
    let started = group::Group::start(&spec.command, |command| {
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
    let mut child = started.map_err(|error| explain(spec, environment, &error))?;
    let pipes = child.pipes();
    let group = Group::new(child);
    match pipes {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Started { group, stdin, stdout, stderr }),
        _ => Err(StartError { server: spec.server.clone(), why: SpawnError::NoPipes }),
    }
}

/// Why a child was not started, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("cannot start `{server}`: {why}")]
pub(super) struct StartError {
    server: String,
    why: SpawnError,
}

impl StartError {
    /// The exit code that a shell gives for it.
    pub(super) fn exit_code(&self) -> u8 {
        match self.why {
            SpawnError::NoFile(_) | SpawnError::NoCommand { .. } | SpawnError::NoInterpreter(_) => {
                127
            }
            SpawnError::NotExecutable(_) => 126,
            _ => 1,
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum SpawnError {
    #[error("the folder `{}` does not exist; create it or correct `cwd`", .0.display())]
    NoFolder(PathBuf),
    #[error("the folder `{}` cannot be created: {error}", folder.display())]
    FolderNotCreated { folder: PathBuf, error: String },
    #[error(
        "`{0}` exists, but the program that its first line names does not; install that program"
    )]
    NoInterpreter(String),
    #[error("there is no file `{}`; correct `command` or `cwd`", .0.display())]
    NoFile(PathBuf),
    #[error("no command `{command}` in {searched}; install it or write its full path")]
    NoCommand { command: String, searched: String },
    #[error(
        "`{0}` may not be executed (permission denied); make the file executable (`chmod +x`) and \
         its folder readable for the gateway's user"
    )]
    NotExecutable(String),
    #[error("`{command}`: {error}")]
    Other { command: String, error: String },
    #[error("its pipes are missing")]
    NoPipes,
}

/// Finds the cause of an error of the operating system, which is only "not found".
fn explain(spec: &ChildSpec, environment: &[(String, String)], error: &io::Error) -> StartError {
    let ChildSpec { server, command, cwd, .. } = spec;
    let command = command.clone();
    let why = match (cwd, error.kind()) {
        (Some(cwd), _) if !cwd.is_dir() => SpawnError::NoFolder(cwd.clone()),
        (_, io::ErrorKind::NotFound) if command.contains('/') => {
            let path = cwd.as_deref().unwrap_or(Path::new("")).join(&command);
            if path.exists() {
                SpawnError::NoInterpreter(command)
            } else {
                SpawnError::NoFile(path)
            }
        }
        (_, io::ErrorKind::NotFound) => {
            SpawnError::NoCommand { command, searched: searched(environment) }
        }
        (_, io::ErrorKind::PermissionDenied) => SpawnError::NotExecutable(command),
        _ => SpawnError::Other { command, error: error.to_string() },
    };
    StartError { server: server.clone(), why }
}

fn searched(environment: &[(String, String)]) -> String {
    // The last entry wins, as it does when the environment is built.
    match environment.iter().rev().find(|(name, _)| name == "PATH") {
        Some((_, path)) => format!("PATH (`{path}`)"),
        None => "the system's default folders (the child has no PATH)".to_owned(),
    }
}
