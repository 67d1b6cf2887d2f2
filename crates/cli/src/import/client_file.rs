//! The file of an MCP client, as a file with `mcpServers` and without literal secrets.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toolgate_clients::{
    FileValue, Format, Found, NotServers, SecretPlace, TakenSecret, externalise, servers, text_of,
};
use toolgate_config::{Surroundings, secret_name};
use toolgate_control::trusted;
use toolgate_os::files;

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
            secrets.extend(externalise(name, entry, FOLDER, &secret_name));
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
            let _infallible = writeln!(text, "note: {note}");
        }
        for TakenSecret { server, name, place, .. } in &self.secrets {
            let to = match place {
                SecretPlace::File => format!("the file {FOLDER}/{name}"),
                SecretPlace::Variable => format!("the variable {name} in {VARIABLES}"),
            };
            // Writing to a String cannot fail.
            let _infallible = writeln!(text, "secret: a literal secret of `{server}` becomes {to}");
        }
        text
    }

    /// Writes the secrets beside the configuration, for their owner alone; a message for people.
    pub(super) fn write_secrets(&self, config: &Path) -> anyhow::Result<String> {
        let beside = config.parent().filter(|folder| !folder.as_os_str().is_empty());
        let beside = beside.unwrap_or(Path::new("."));
        let folder = beside.join(FOLDER);
        let mut message = String::new();
        for secret in self.secrets.iter().filter(|it| it.place == SecretPlace::File) {
            let what = || format!("cannot write the secrets in `{}`", folder.display());
            files::create_folders(&folder).with_context(what)?;
            let file = folder.join(&secret.name);
            trusted::put(&file, secret.value.as_bytes()).with_context(what)?;
            let _infallible = writeln!(message, "secret written to {}", file.display());
        }
        let mut variables = String::new();
        for secret in self.secrets.iter().filter(|it| it.place == SecretPlace::Variable) {
            let _infallible = writeln!(variables, "{}={}", secret.name, quoted(&secret.value));
        }
        if !variables.is_empty() {
            let file = beside.join(VARIABLES);
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

/// For a shell and for systemd.
fn quoted(value: &str) -> String {
    if value.contains('\'') {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$"))
    } else {
        format!("'{value}'")
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
