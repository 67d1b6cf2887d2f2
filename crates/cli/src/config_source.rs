//! The configuration file: where it is, and reading it with or without the secrets of `serve`.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use toolgate_config::{Config, Problem, Severity, Surroundings, TlsFault, render};
use toolgate_control::{FileState, Inputs, PolicyFiles, Recording, ThisProcess, trusted, visible};
use toolgate_edge::tls::{Certificate, Unusable};

use crate::print;

const USUAL: &str = "toolgate.yaml";
/// Where v8-session-manager is told its configuration.
const V8: &str = "V8SM_CONFIG";

/// A file, or nothing at all.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    file: Option<PathBuf>,
}

impl Source {
    /// The file that was named, else that of `V8SM_CONFIG`, else `./toolgate.yaml` if it exists.
    pub(crate) fn find(named: Option<&Path>) -> Self {
        let usual = || Path::new(USUAL).exists().then(|| PathBuf::from(USUAL));
        let of_v8 = || std::env::var_os(V8).filter(|file| !file.is_empty()).map(PathBuf::from);
        let file = named.map(Path::to_owned).or_else(of_v8).or_else(usual);
        // Absolute, so that messages name a place and not a point of view.
        Self { file: file.map(|file| std::path::absolute(&file).unwrap_or(file)) }
    }

    /// The file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The configuration for a verb that only asks where things are: it may be run where the
    /// secrets of `serve` are not.
    pub(crate) fn load_without_secrets(&self) -> anyhow::Result<Config> {
        let loaded = self.file().map(|file| Config::load(file, &Elsewhere { file }));
        match loaded {
            Some(Ok(loaded)) => Ok(loaded.config),
            // With the secrets that are there it says what is wrong.
            _ => self.load(),
        }
    }

    /// Parses the file, also where the secrets of `serve` are missing.
    pub(crate) fn file_state(&self) -> anyhow::Result<FileState> {
        let config = self.load_without_secrets()?;
        let policies = PolicyFiles::read(&config, None, &mut Inputs::default());
        Ok(FileState { config, policies, local_policy: None })
    }

    /// How many errors the file has, apart from secrets that are not here.
    pub(crate) fn errors(&self) -> usize {
        let loaded = self.file().map(|file| Config::load(file, &Elsewhere { file }));
        let problems = loaded.and_then(Result::err).unwrap_or_default();
        let is_error = |problem: &&Problem| problem.severity == Severity::Error;
        problems.iter().filter(is_error).count()
    }

    /// The data folder that the file names. A verb that needs no more works with a file that has
    /// mistakes, too.
    pub(crate) fn data(&self) -> anyhow::Result<Option<PathBuf>> {
        let Some(file) = self.file() else { return Ok(None) };
        let bytes = trusted::read(file)
            .with_context(|| format!("the configuration `{}` is not used", file.display()))?;
        if let Ok(loaded) = Config::load(file, &Elsewhere { file }) {
            return Ok(loaded.config.data);
        }
        let shown = visible(&file.display().to_string());
        print::err(&format!("`{shown}` has mistakes; only its `data` is used here\n"));
        Ok(toolgate_config::data_of(&bytes, file))
    }

    /// Reads the configuration; problems are shown and end the start.
    pub(crate) fn load(&self) -> anyhow::Result<Config> {
        self.load_with_inputs().map(|(config, _)| config)
    }

    /// The same, with the files that the configuration was read from.
    pub(crate) fn load_with_inputs(&self) -> anyhow::Result<(Config, Inputs)> {
        let Some(file) = &self.file else { return Ok((Config::default(), Inputs::default())) };
        let recording = Recording::new(&Here);
        match Config::load(file, &recording) {
            Ok(loaded) => {
                print::err(&render(&loaded.warnings));
                Ok((loaded.config, recording.into_inputs()))
            }
            Err(problems) => {
                print::err(&render(&problems));
                bail!("the configuration `{}` cannot be used", file.display())
            }
        }
    }
}

/// This process, its trusted files, and the check of certificates.
pub(crate) struct Here;

impl Surroundings for Here {
    fn env(&self, name: &str) -> Option<String> {
        ThisProcess.env(name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        ThisProcess.read(path)
    }

    fn check_tls(&self, cert: &[u8], key: &[u8]) -> Result<(), TlsFault> {
        let Err(fault) = Certificate::from_pem(cert, key) else { return Ok(()) };
        let why = fault.to_string();
        Err(match fault {
            Unusable::Certificate(_) => TlsFault::Cert(why),
            Unusable::Key(_) | Unusable::NotAPair => TlsFault::Key(why),
        })
    }
}

/// Surroundings in which every secret exists, each with a value of its own that opens nothing.
struct Elsewhere<'a> {
    /// The configuration itself.
    file: &'a Path,
}

impl Surroundings for Elsewhere<'_> {
    fn env(&self, name: &str) -> Option<String> {
        ThisProcess.env(name).or_else(|| Some(format!("the-variable-{name}-is-not-set-here")))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match trusted::read(path) {
            Err(_) if path != self.file => {
                Ok(format!("the-file-{}-is-not-here", path.display()).into_bytes())
            }
            read => read,
        }
    }
}
