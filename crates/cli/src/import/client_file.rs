//! The file of an MCP client, as a file with `mcpServers` and without literal secrets.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use toolgate_clients::{
    FileValue, Format, Found, NotServers, SecretPlace, TakenSecret, externalise, servers, text_of,
};
use toolgate_config::{Surroundings, secret_name};
use toolgate_control::trusted;
use toolgate_os::files;

use super::variables;
use crate::config_source::Here;

/// The folder of secrets, beside the configuration.
const FOLDER: &str = "secrets";
/// The file of variables, beside the configuration.
const VARIABLES: &str = "toolgate.env";

/// A client's file, translated.
pub(super) struct ClientFile {
    path: PathBuf,
    text: String,
    found: Found,
    secrets: Vec<TakenSecret>,
}

impl ClientFile {
    /// `None` if it is the file of another program.
    pub(super) fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        let end = path.extension().map(|end| end.to_string_lossy().to_lowercase());
        let format = match end.as_deref() {
            Some("toml") => Format::Toml,
            Some("yaml" | "yml") => return Ok(None),
            _ => Format::Json,
        };
        let cannot = || format!("`{}` cannot be imported", path.display());
        // A file that cannot be read is reported with the others.
        let Ok(bytes) = trusted::read(path) else { return Ok(None) };
        let text = text_of(bytes).with_context(cannot)?;
        let mut found = match servers(&text, format) {
            Ok(found) => found,
            Err(NotServers::None) => return Ok(None),
            Err(why) => return Err(why).with_context(cannot),
        };
        let mut secrets = Vec::new();
        for (name, entry) in &mut found.servers {
            externalise(name, entry, FOLDER, &secret_name, &mut secrets);
        }
        let entries = FileValue::Object(found.servers.clone());
        let text = FileValue::object([("mcpServers", entries)]).pretty("  ", "");
        Ok(Some(Self { path: path.to_owned(), text, found, secrets }))
    }

    pub(super) fn has_secrets(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// What was left out, and which secrets become references; never a value.
    pub(super) fn notes(&self) -> String {
        let mut text = String::new();
        for note in &self.found.notes {
            // Writing to a String cannot fail.
            let _infallible = writeln!(text, "note: {}", on_one_line(note));
        }
        for TakenSecret { server, name, place, .. } in &self.secrets {
            let to = match place {
                SecretPlace::File => format!("the file {FOLDER}/{name}"),
                SecretPlace::Variable => format!("the variable {name} in {VARIABLES}"),
            };
            // Writing to a String cannot fail.
            let server = on_one_line(server);
            let _infallible = writeln!(text, "secret: a literal secret of `{server}` becomes {to}");
        }
        text
    }

    /// Writes the secrets beside the configuration, for their owner alone; a message for people.
    /// Values that another configuration uses are replaced only with `may_replace`.
    pub(super) fn write_secrets(&self, config: &Path, may_replace: bool) -> anyhow::Result<String> {
        let beside = config.parent().filter(|folder| !folder.as_os_str().is_empty());
        let beside = beside.unwrap_or(Path::new("."));
        let folder = beside.join(FOLDER);
        let of = |place: SecretPlace| self.secrets.iter().filter(move |it| it.place == place);
        let mut files_to_write = Vec::new();
        for secret in of(SecretPlace::File) {
            let file = folder.join(&secret.name);
            let held = held(&file)?;
            if held.as_ref().is_some_and(|held| held != secret.value.as_bytes()) && !may_replace {
                bail!(in_use(&file, "another value"));
            }
            files_to_write.push((file, secret.value.as_bytes()));
        }
        let file = beside.join(VARIABLES);
        let before = String::from_utf8(held(&file)?.unwrap_or_default())
            .with_context(|| format!("`{}` is not UTF-8", file.display()))?;
        let added: Vec<&TakenSecret> = of(SecretPlace::Variable).collect();
        let variables = match variables::with(&before, &added) {
            (_, Some(other)) if !may_replace => {
                bail!(in_use(&file, &format!("another value of {other}")));
            }
            (text, _) => text,
        };
        let mut message = String::new();
        for (file, value) in files_to_write {
            let what = || format!("cannot write the secrets in `{}`", folder.display());
            files::create_folders(&folder).with_context(what)?;
            trusted::put(&file, value).with_context(what)?;
            // Writing to a String cannot fail.
            let _infallible = writeln!(message, "secret written to {}", file.display());
        }
        if !added.is_empty() {
            let what = || format!("cannot write `{}`", file.display());
            trusted::put(&file, variables.as_bytes()).with_context(what)?;
            let shown = file.display();
            let _infallible = writeln!(
                message,
                "variables written to {shown}; load them before `serve`: set -a; . {shown}; set +a \
                 (or EnvironmentFile= in systemd)"
            );
        }
        Ok(message)
    }
}

/// Names of the file cannot look like further lines.
fn on_one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

fn in_use(file: &Path, what: &str) -> String {
    format!(
        "`{}` holds {what}, which another configuration may use; write into another folder, or \
         replace it with `--force`",
        file.display()
    )
}

/// The content of a file that may not exist yet.
fn held(file: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match trusted::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some).with_context(|| format!("cannot read `{}`", file.display())),
    }
}

/// The translated text in the place of the file; references need not exist yet.
impl Surroundings for ClientFile {
    fn env(&self, name: &str) -> Option<String> {
        Here.env(name).or_else(|| Some(format!("the-variable-{name}-is-not-set-here")))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path == self.path {
            return Ok(self.text.clone().into_bytes());
        }
        match Here.read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(format!("the-file-{}-is-not-here", path.display()).into_bytes())
            }
            read => read,
        }
    }

    fn has_program(&self, program: &str, path: Option<&str>, folder: &Path) -> bool {
        Here.has_program(program, path, folder)
    }
}
