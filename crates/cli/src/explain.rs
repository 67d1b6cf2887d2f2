//! `toolgate explain CODE`: what an error code means, and what to do.

use anyhow::bail;
use toolgate_audit::{ERROR_CODES, ErrorCode};
use toolgate_policy::Code;

use crate::exit::Done;
use crate::print;

/// Codes that are less alike are not suggested.
const ALIKE: f64 = 0.8;

pub(crate) fn run(code: &str) -> anyhow::Result<Done> {
    let wanted = code.trim();
    let of_agents = ERROR_CODES.iter().find(|known| known.code.eq_ignore_ascii_case(wanted));
    let of_policies = Code::ALL.iter().find(|known| known.as_str().eq_ignore_ascii_case(wanted));
    match (of_agents, of_policies) {
        (Some(known), _) => print::out(&for_agents(known)),
        (_, Some(known)) => {
            let (code, title, advice) = (known.as_str(), known.title(), known.advice());
            print::out(&format!("{code} (policy check)\n\n{title}\n\nWhat to do: {advice}\n"));
        }
        (None, None) => bail!("there is no code `{wanted}`{}", suggestion(wanted)),
    }
    Ok(Done::Ok)
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
    let codes = ERROR_CODES.iter().map(|known| known.code);
    let codes = codes.chain(Code::ALL.iter().map(|known| known.as_str()));
    let scored = codes
        .map(|code| (strsim::jaro_winkler(&wanted.to_lowercase(), &code.to_lowercase()), code));
    let near = scored.filter(|(score, _)| *score > ALIKE).max_by(|a, b| a.0.total_cmp(&b.0));
    match near {
        Some((_, code)) => format!("; did you mean `{code}`?"),
        None => "; docs/reference lists all codes".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_and_typos_are_not() {
        for code in ["rate_limited", "RATE_LIMITED", "TG0001"] {
            assert!(run(code).is_ok(), "{code}");
        }
        let error = run("rate_limit").unwrap_err().to_string();
        assert!(error.contains("did you mean `rate_limited`?"), "{error}");
    }
}
