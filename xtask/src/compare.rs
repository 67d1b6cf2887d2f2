//! Compares two transcripts of one tour field by field.
//!
//! Answers are compared step by step, server-initiated messages method by method: over HTTP these
//! use different streams, so their relative order is undefined, while the order within a step or a
//! method is defined.
//!
//! Invariant: scalars are compared as spelled, members in order; only what the tour's `varying`
//! table names may differ. Ids of JSON-RPC are each side's own.
//! Start at [`compare`]. Tested by `compare/tests.rs`.

mod tour;
mod tree;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::tour::{Link, Tour};
use self::tour::{Mask, Rule};
use self::tree::Tree;

/// The transcript of a driver.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Transcript {
    answers: Vec<Answer>,
    incoming: Vec<Incoming>,
    /// The client's HTTP exchanges; empty over stdio.
    http: Vec<Exchange>,
    /// Names of the tools, of a walk among many servers.
    listed: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Exchange {
    method: String,
    status: u16,
}

#[derive(Clone, Debug, Deserialize)]
struct Answer {
    step: String,
    raw: String,
    /// It was repeated when the client resumed a stream.
    repeated: bool,
}

#[derive(Clone, Debug, Deserialize)]
struct Incoming {
    method: String,
    raw: String,
    /// Progress of a call that the client had already cancelled: it may arrive or not.
    late: bool,
    repeated: bool,
}

impl Transcript {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).context("not a transcript")
    }

    /// Problems of the HTTP exchanges of a walk: each must succeed, up to the DELETE that ends the
    /// session. Later ones (a closed stream is resumed) are ignored.
    pub(crate) fn http_faults(&self) -> Vec<String> {
        let end = self.http.iter().position(|exchange| exchange.method == "DELETE");
        let counted = self.http.iter().take(end.map_or(self.http.len(), |end| end + 1));
        let failed = counted.filter(|exchange| !(200..300).contains(&exchange.status));
        let faults =
            failed.map(|failed| format!("{} was answered {}", failed.method, failed.status));
        let left = end.is_none().then(|| "the session was not ended by DELETE".to_owned());
        faults.chain(left).collect()
    }

    /// A direct walk: without repeats, if the tour states that the server makes them.
    pub(crate) fn of_direct_walk(mut self, tour: &Tour) -> Self {
        if tour.repeats.is_some() {
            self.answers.retain(|answer| !answer.repeated);
            self.incoming.retain(|message| !message.repeated);
        }
        self
    }
}

/// All differences between the answers to the calls of a direct walk and those of a walk on the
/// endpoint of many servers, where this one is called `name`; and the number of compared answers.
pub(crate) fn compare_calls(
    tour: &Tour,
    link: Link,
    direct: &Transcript,
    among: &Transcript,
    name: &str,
) -> (usize, Vec<String>) {
    let mut found = Vec::new();
    let (own, shown) = (direct.tools(), among.listed.clone().unwrap_or_default());
    if own != shown {
        found.push(format!("tools: {own:?} direct, {shown:?} among others"));
    }
    // Its URIs and its questions contain its name there.
    let here = |answer: &Answer| {
        answer.raw.replace(&format!("{name}+"), "").replace(&format!("\"[{name}] "), "\"")
    };
    let mut compared = 0;
    for answer in among.answers.iter().filter(|answer| tour.is_call(&answer.step)) {
        let place = Place::Step(answer.step.clone());
        let there = direct.answers.iter().find(|other| other.step == answer.step);
        let Some(there) = there else {
            found.push(format!("step `{}`: no direct answer", answer.step));
            continue;
        };
        let mut sides = [Tree::message(&there.raw), Tree::message(&here(answer))];
        for rule in tour.rules(link).filter(|rule| rule.is_for(&place)) {
            for side in &mut sides {
                rule.apply(side);
            }
        }
        let [left, right] = sides;
        difference(&place, &[left], &[right], &mut found);
        compared += 1;
    }
    (compared, found)
}

/// Every difference between the two, each in a few lines; empty when they are the same.
pub(crate) fn compare(
    tour: &Tour,
    link: Link,
    direct: &Transcript,
    through: &Transcript,
) -> Vec<String> {
    let mut rules: Vec<(&Rule, bool)> =
        tour.rules(link).map(|rule| (rule, rule.mask == Mask::Count)).collect();
    let mut found = tour.unanswered("direct", &direct.steps());
    found.extend(tour.unanswered("through", &through.steps()));

    let (left, right) = (direct.by_place(), through.by_place());
    let empty = Vec::new();
    for place in left.keys().chain(right.keys().filter(|place| !left.contains_key(*place))) {
        let mut lists = [&left, &right].map(|side| side.get(place).unwrap_or(&empty).clone());
        let mut any_count = false;
        for (rule, used) in rules.iter_mut().filter(|(rule, _)| rule.is_for(place)) {
            any_count |= rule.mask == Mask::Count;
            for message in lists.iter_mut().flatten() {
                *used |= rule.apply(message);
            }
        }
        let [left, right] = &mut lists;
        if any_count {
            let both = left.len().min(right.len());
            left.truncate(both);
            right.truncate(both);
        }
        difference(place, left, right, &mut found);
    }
    found.extend(rules.iter().filter(|(_, used)| !used).map(|(rule, _)| {
        format!("the tour's rule `{rule}` matches nothing: take it out of the table")
    }));
    found
}

/// The position of a message: the answer to a step, or a method the server used.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Place {
    Step(String),
    Method(String),
}

impl Transcript {
    /// The names in the answer to the step `tools`.
    fn tools(&self) -> Vec<String> {
        let answer = self.answers.iter().find(|answer| answer.step == "tools");
        let answer = answer.and_then(|answer| serde_json::from_str::<Value>(&answer.raw).ok());
        let tools = answer.as_ref().and_then(|answer| answer.pointer("/result/tools"));
        let tools = tools.and_then(Value::as_array).into_iter().flatten();
        tools.filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned())).collect()
    }

    fn steps(&self) -> Vec<&str> {
        self.answers.iter().map(|answer| answer.step.as_str()).collect()
    }

    fn by_place(&self) -> BTreeMap<Place, Vec<Tree>> {
        let answers = self.answers.iter().map(|a| (Place::Step(a.step.clone()), &a.raw));
        let in_time = self.incoming.iter().filter(|message| !message.late);
        let incoming = in_time.map(|i| (Place::Method(i.method.clone()), &i.raw));
        let mut places: BTreeMap<Place, Vec<Tree>> = BTreeMap::new();
        for (place, raw) in answers.chain(incoming) {
            places.entry(place).or_default().push(Tree::message(raw));
        }
        places
    }
}

fn difference(place: &Place, left: &[Tree], right: &[Tree], found: &mut Vec<String>) {
    let name = match place {
        Place::Step(step) => format!("step `{step}`"),
        Place::Method(method) => format!("`{method}` from the server"),
    };
    if left.len() != right.len() {
        found.push(format!("{name}: {} messages direct, {} through", left.len(), right.len()));
    }
    for (left, right) in left.iter().zip(right) {
        for difference in left.differences(right) {
            found.push(format!("{name}: {difference}"));
        }
    }
}

#[cfg(test)]
mod tests;
