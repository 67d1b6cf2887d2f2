//! Servers that are child processes.

use std::path::PathBuf;

use super::{RawServer, quotable};
use crate::problem::code;
use crate::reader::{At, Reader};
use crate::secret_name::secret_name;
use crate::value::{Expanded, Keyword, Scalar, Scope, Secret, Text, expand};

/// A server that is a child process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stdio {
    /// The program.
    pub command: Expanded,
    /// Arguments of the program.
    pub args: Vec<Expanded>,
    /// Environment variables, in the order of the file.
    pub env: Vec<(String, Secret)>,
    /// Values of variables and arguments that came from a reference or have secret-sounding names.
    pub secrets: Vec<Secret>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Whether all agents share one child, instead of one child per agent session.
    pub shared: bool,
}

/// Whether agents share a child.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IsShared(bool);

impl Keyword for IsShared {
    const WORDS: &'static [(&'static str, Self)] =
        &[("per-agent", Self(false)), ("shared", Self(true))];
}

impl RawServer {
    pub(super) fn lower_stdio(
        &mut self,
        command: &At<Text>,
        reader: &mut Reader<'_>,
    ) -> Option<Stdio> {
        self.refuse_placeholders(reader);
        let program = expand(&command.value.0, command.span, Scope::Program, reader);
        let has_args = self.args.is_some();
        let args = self.args.take().map(|at| at.value).unwrap_or_default();
        let args: Vec<_> = args
            .into_iter()
            .map(|arg| expand(&arg.value.0, arg.span, Scope::Program, reader))
            .collect();
        let args = args.into_iter().collect::<Option<Vec<_>>>();
        let env = self.lower_env(reader);
        let cwd = match self.cwd.take() {
            None => Some(reader.folder.clone()),
            Some(cwd) => expand(&cwd.value.0, cwd.span, Scope::Program, reader)
                .map(|cwd| reader.path(cwd.expose())),
        };
        if let (Some(program), Some(env), Some(cwd)) = (&program, &env, &cwd) {
            let path = env.iter().find(|variable| variable.name == "PATH");
            let path = path.map(|variable| variable.value.expose());
            if !reader.surroundings.has_program(program.expose(), path, cwd) {
                warn_of_program(command, has_args, reader);
            }
        }
        Some(Stdio {
            command: program?,
            secrets: secrets(args.as_deref(), env.as_deref()),
            args: args?,
            env: env?.into_iter().map(|variable| (variable.name, variable.value)).collect(),
            cwd: cwd?,
            shared: self.instances.take().is_some_and(|at| at.value.0.0),
        })
    }

    /// A shared child belongs to no grant.
    fn refuse_placeholders(&self, reader: &mut Reader<'_>) {
        if self.instances.as_ref().is_none_or(|at| !at.value.0.0) {
            return;
        }
        let args = self.args.iter().flat_map(|at| &at.value);
        let env = self.env.iter().flat_map(|at| &at.value.entries).map(|(_, value)| value);
        let values = args.chain(env).map(|at| (at.value.0.as_str(), at.span));
        let cwd = self.cwd.iter().map(|at| (at.value.0.as_str(), at.span));
        for (text, span) in values.chain(cwd) {
            for placeholder in ["{grant}", "{instance}"] {
                if text.contains(placeholder) {
                    let message = format!("`{placeholder}` requires `instances: per-agent`");
                    let hint = "remove the placeholder, or remove `instances: shared`";
                    reader.error_hint(code::CONFLICT, span, message, hint);
                }
            }
        }
    }

    fn lower_env(&mut self, reader: &mut Reader<'_>) -> Option<Vec<Variable>> {
        let entries = self.env.take().map(|at| at.value.entries).unwrap_or_default();
        let lowered: Vec<_> =
            entries.into_iter().map(|(name, value)| lower_variable(name, &value, reader)).collect();
        lowered.into_iter().collect()
    }
}

/// Warns of a program that is not found, most often because its arguments are in `command` too.
fn warn_of_program(command: &At<Text>, has_args: bool, reader: &mut Reader<'_>) {
    let Text(written) = &command.value;
    let (message, hint) = match written.split_whitespace().next() {
        Some(first) if first != written && !has_args => (
            "`command` is one program name, and no shell splits it into arguments".to_owned(),
            format!("write `command: {first}`, and the rest as `args: [a, b]`"),
        ),
        _ => (
            format!("the program `{written}` is not found"),
            "install it, or write its full path".to_owned(),
        ),
    };
    reader.warn(code::NO_PROGRAM, command.span, message, hint);
}

/// A variable for a child.
struct Variable {
    name: String,
    value: Secret,
    is_secret: bool,
}

fn secrets(args: Option<&[Expanded]>, env: Option<&[Variable]>) -> Vec<Secret> {
    let args = args.unwrap_or_default().iter().filter(|arg| arg.has_reference());
    let env = env.unwrap_or_default().iter().filter(|variable| variable.is_secret);
    args.map(|arg| Secret::new(arg.expose()))
        .chain(env.map(|variable| variable.value.clone()))
        .collect()
}

fn lower_variable(
    name: At<String>,
    value: &At<Scalar>,
    reader: &mut Reader<'_>,
) -> Option<Variable> {
    if name.value.is_empty() || name.value.contains(['=', '\0']) {
        let message = format!("`{}…` is not a valid name of a variable", quotable(&name.value));
        let hint = "write `NAME: value`";
        reader.error_hint(code::INVALID_NAME, name.span, message, hint);
        return None;
    }
    let expanded = expand(&value.value.0, value.span, Scope::Value, reader)?;
    let literal = !expanded.has_reference() && !expanded.expose().is_empty();
    let sounds_secret = secret_name(&name.value);
    if literal && sounds_secret {
        let message =
            format!("`{}` looks like a secret and is written in the file itself", name.value);
        let hint = format!("write `{0}: env:{0}` or `{0}: file:PATH`", name.value);
        reader.warn(code::LITERAL_SECRET, value.span, message, hint);
    }
    let is_secret = expanded.has_reference() || sounds_secret;
    Some(Variable { name: name.value, value: Secret::new(expanded.expose()), is_secret })
}
