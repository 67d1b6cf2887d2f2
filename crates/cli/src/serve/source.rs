//! Where the configuration comes from.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use toolgate_config::{Config, Problem, Process, Surroundings, render};

use super::certificate::Here;
use super::inputs::{Inputs, Recording};
use crate::policy::visible;
use crate::{print, trusted};

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

    /// What is wrong with the file, but for secrets that are not here.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let loaded = self.file().map(|file| Config::load(file, &Elsewhere { file }));
        match loaded {
            Some(Err(problems)) => problems,
            _ => Vec::new(),
        }
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

/// Surroundings in which every secret is there, each with a value of its own that opens nothing.
struct Elsewhere<'a> {
    /// The configuration itself.
    file: &'a Path,
}

impl Surroundings for Elsewhere<'_> {
    fn env(&self, name: &str) -> Option<String> {
        Process.env(name).or_else(|| Some(format!("the-variable-{name}-is-not-set-here")))
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
