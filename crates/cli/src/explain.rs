//! `toolgate explain CODE`: what an error code means, and what to do.
//!
//! Every code also has a page in `docs/errors`, generated from the same data (`pages`).

#[cfg(test)]
mod pages;

use anyhow::bail;
use toolgate_audit::{ERROR_CODES, ErrorCode};
use toolgate_config::CODES;
use toolgate_policy::Code;

use crate::exit::Done;
use crate::print;
use crate::suggest::nearest;

/// One code, wherever it comes from.
enum Known {
    Agent(&'static ErrorCode),
    Policy(Code),
    Config(&'static str, &'static str),
}

pub(crate) fn run(code: &str) -> anyhow::Result<Done> {
    let wanted = code.trim();
    let Some(known) = all().find(|known| known.code().eq_ignore_ascii_case(wanted)) else {
        bail!("there is no code `{wanted}`{}", suggestion(wanted));
    };
    print::out(&format!("{}\nPage: {}\n", known.text(), page_of(known.code())));
    Ok(Done::Ok)
}

/// The page about a code, in the documentation.
fn page_of(code: &str) -> String {
    format!("docs/errors/{code}.md")
}

/// Where to read about the first of these codes, as a line for people.
pub(crate) fn pointer<'c>(mut codes: impl Iterator<Item = &'c str>) -> String {
    codes.next().map_or_else(String::new, |code| {
        format!("`toolgate explain {code}` or {} tells more\n", page_of(code))
    })
}

fn all() -> impl Iterator<Item = Known> {
    let of_agents = ERROR_CODES.iter().map(Known::Agent);
    let of_policies = Code::ALL.iter().copied().map(Known::Policy);
    let of_configurations = CODES.iter().map(|(code, what)| Known::Config(code, what));
    of_agents.chain(of_policies).chain(of_configurations)
}

impl Known {
    fn code(&self) -> &'static str {
        match self {
            Known::Agent(known) => known.code,
            Known::Policy(code) => code.as_str(),
            Known::Config(code, _) => code,
        }
    }

    fn text(&self) -> String {
        match self {
            Known::Agent(known) => for_agents(known),
            Known::Policy(code) => {
                let (code, title, advice) = (code.as_str(), code.title(), code.advice());
                format!("{code} (policy check)\n\n{title}\n\nWhat to do: {advice}\n")
            }
            Known::Config(code, what) => {
                let what = what.trim();
                format!(
                    "{code} (toolgate.yaml)\n\n{what}\n\nWhat to do: `toolgate config check` names \
                     the line and how to correct it\n"
                )
            }
        }
    }
}

fn for_agents(known: &ErrorCode) -> String {
    let ErrorCode { code, when, prefix, agent, operator } = known;
    let text = match *prefix {
        "" => String::new(),
        prefix => format!("Its text begins with {prefix}.\n"),
    };
    format!("{code}\n\n{when}\n{text}\nAgents: {agent}\nOperators: {operator}\n")
}

fn suggestion(wanted: &str) -> String {
    match nearest(wanted, all().map(|known| known.code())) {
        Some(code) => format!("; did you mean `{code}`?"),
        None => "; docs/errors lists all codes".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_and_typos_are_not() {
        for code in ["rate_limited", "RATE_LIMITED", "TG0001", "tg1001"] {
            assert!(run(code).is_ok(), "{code}");
        }
        let error = run("rate_limit").unwrap_err().to_string();
        assert!(error.contains("did you mean `rate_limited`?"), "{error}");
    }
}
