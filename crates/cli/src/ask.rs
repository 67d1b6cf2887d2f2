//! Questions to a person, on a terminal only.

use std::io::{IsTerminal as _, stdin};

use anyhow::bail;

use crate::print;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
}

/// Asks; without a terminal this is an error that names `--yes`.
pub(crate) fn ask(question: &str) -> anyhow::Result<Answer> {
    if !stdin().is_terminal() {
        bail!("nothing was written, because there is no terminal to ask on; add --yes");
    }
    print::err(&format!("{question} [y/N] "));
    let mut line = String::new();
    stdin().read_line(&mut line)?;
    let yes = ["y", "yes", "д", "да"].contains(&line.trim().to_lowercase().as_str());
    Ok(if yes { Answer::Yes } else { Answer::No })
}
