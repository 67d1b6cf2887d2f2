//! The configuration file: finding it, and loading it with or without the secrets of `serve`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;

use anyhow::{Context as _, bail};
use toolgate_config::{Config, Loaded, Problem, Surroundings, TlsFault};
use toolgate_control::{FileState, Inputs, PolicyFiles, Recording, ThisProcess, trusted, visible};
use toolgate_edge::tls::{Certificate, Unusable};

use crate::print;

const DEFAULT_FILE: &str = "toolgate.yaml";

/// A verb may look for the data folder more than once.
static WARNED: Once = Once::new();

/// The variable that v8-session-manager reads.
const V8_VARIABLE: &str = "V8SM_CONFIG";

/// The configuration file, if there is one.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    file: Option<PathBuf>,
    /// Where the file is looked for if none is named.
    default: PathBuf,
}

impl Source {
    /// The given file, else that of `V8SM_CONFIG`, else `./toolgate.yaml` if it exists.
    pub(crate) fn find(named: Option<&Path>) -> Self {
        // Absolute, so that messages do not depend on the current folder.
        let absolute = |file: PathBuf| std::path::absolute(&file).unwrap_or(file);
        let default = absolute(PathBuf::from(DEFAULT_FILE));
        let of_v8 =
            || std::env::var_os(V8_VARIABLE).filter(|file| !file.is_empty()).map(PathBuf::from);
        let file = named.map(Path::to_owned).or_else(of_v8).map(absolute);
        let mut source = Self { file, default };
        source.find_again();
        source
    }

    /// Uses `./toolgate.yaml` if it exists by now and no other file is used.
    pub(crate) fn find_again(&mut self) {
        if self.file.is_none() && self.default.exists() {
            self.file = Some(self.default.clone());
        }
    }

    /// Records that there is no file, so that one that is created is noticed.
    pub(crate) fn record_absence(&self, inputs: &mut Inputs) {
        if self.file.is_none() {
            // One that appears meanwhile differs from what is recorded, so it is noticed.
            let absent = trusted::read(&self.default).err();
            let absent = absent.unwrap_or_else(|| io::ErrorKind::NotFound.into());
            inputs.record(&self.default, &Err(absent));
        }
    }

    /// The file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The configuration for verbs that run where the secrets of `serve` may be missing.
    pub(crate) fn load_without_secrets(&self) -> anyhow::Result<Config> {
        let loaded = self.file().map(|file| Config::load(file, &Elsewhere { file }));
        match loaded {
            Some(Ok(loaded)) => Ok(loaded.config),
            // Loading it with the real secrets reports the problems.
            _ => self.load(),
        }
    }

    /// The same, without a word.
    pub(crate) fn load_quietly(&self) -> Result<Config, Vec<Problem>> {
        match self.file() {
            Some(file) => Config::load(file, &Elsewhere { file }).map(|loaded| loaded.config),
            None => Ok(Config::default()),
        }
    }

    /// Parses the file, also where the secrets of `serve` are missing.
    pub(crate) fn file_state(&self) -> anyhow::Result<FileState> {
        let config = self.load_without_secrets()?;
        let policies = PolicyFiles::read(&config, None, &mut Inputs::default());
        Ok(FileState { config, policies, local_policy: None })
    }

    /// The data folder that the file names. Verbs that need no more also work with an invalid file.
    pub(crate) fn data(&self) -> anyhow::Result<Option<PathBuf>> {
        let Some(file) = self.file() else { return Ok(None) };
        let bytes = trusted::read(file)
            .with_context(|| format!("the configuration `{}` cannot be used", file.display()))?;
        if let Ok(loaded) = Config::load(file, &Elsewhere { file }) {
            return Ok(loaded.config.data);
        }
        let shown = visible(&file.display().to_string());
        WARNED.call_once(|| {
            print::err(&format!(
                "`{shown}` is not valid (see `toolgate config check`); using only its `data`\n"
            ));
        });
        Ok(toolgate_config::data_of(&bytes, file))
    }

    /// Loads the configuration; problems are printed and are an error.
    pub(crate) fn load(&self) -> anyhow::Result<Config> {
        let (loaded, _) = self.load_with_inputs()?;
        print::problems(&loaded.warnings);
        Ok(loaded.config)
    }

    /// Also returns the files that the configuration was read from. Prints no warnings.
    pub(crate) fn load_with_inputs(&self) -> anyhow::Result<(Loaded, Inputs)> {
        let Some(file) = &self.file else {
            let mut inputs = Inputs::default();
            self.record_absence(&mut inputs);
            return Ok((Loaded::default(), inputs));
        };
        let recording = Recording::new(&Here);
        match Config::load(file, &recording) {
            Ok(loaded) => Ok((loaded, recording.into_inputs())),
            Err(problems) => {
                print::problems(&problems);
                bail!("the configuration `{}` cannot be used", file.display())
            }
        }
    }
}

/// The real environment: this process, trusted files, and the check of certificates.
pub(crate) struct Here;

impl Surroundings for Here {
    fn env(&self, name: &str) -> Option<String> {
        ThisProcess.env(name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        ThisProcess.read(path)
    }

    fn has_program(&self, program: &str, path: Option<&str>, folder: &Path) -> bool {
        ThisProcess.has_program(program, path, folder)
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

/// An environment in which every secret exists, with a distinct placeholder as its value.
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
