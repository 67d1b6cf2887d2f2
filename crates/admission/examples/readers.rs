//! What other readers make of arguments, against what the policy made of them.
//!
//! `readers bodies COUNT` writes bodies, one a line, in hexadecimal. `readers paths` writes where the
//! rules look. `readers judge COUNT NAME=FILE…` reads what each reader found at these paths and
//! fails if one of them sees something in a body that the gate lets through and a rule decided
//! otherwise. `cargo xtask test --only readers` puts the three together.

#![expect(clippy::print_stdout, reason = "what it writes is what it is for")]

use std::{collections::BTreeMap, error::Error, fs};

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use toolgate_mcp::{Incoming, Limits, Message, parse_agent};
use toolgate_policy::{Call, Class, Effect, Known, Policy, UNUSED, decide};

/// Where rules look, in the order in which readers answer.
const PATHS: &str = r#"[["all"],["amount"],["id"],["s"],["o","k"],["l",0]]"#;

/// A condition, and which path it looks at.
const RULES: [(usize, &str, &str, &str); 14] = [
    (0, "args.all", "eq", "true"),
    (0, "args.all", "eq", "false"),
    (0, "args.all", "exists", "true"),
    (1, "args.amount", "eq", "0"),
    (1, "args.amount", "eq", "0.1"),
    (1, "args.amount", "in", "[9007199254740992,7]"),
    (1, "args.amount", "gt", "10"),
    (1, "args.amount", "lte", "10"),
    (1, "args.amount", "gte", "9007199254740993"),
    (2, "args.id", "eq", "\"a\""),
    (2, "args.id", "in", "[\"a\",\"b\",1]"),
    (3, "args.s", "contains", "\"x\""),
    (4, "args.o.k", "eq", "true"),
    (5, "args.l[0]", "eq", "1"),
];

/// What a reader found at a path.
#[derive(Debug, Deserialize)]
struct Found {
    t: String,
    #[serde(default)]
    v: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["paths"] => println!("{PATHS}"),
        ["bodies", count] => {
            let mut out = String::new();
            for body in bodies(count.parse()?) {
                HEXLOWER.encode_append(&body, &mut out);
                out.push('\n');
            }
            print!("{out}");
        }
        ["judge", count, readers @ ..] => judge(count.parse()?, readers)?,
        _ => return Err("readers takes `paths`, `bodies COUNT` or `judge COUNT NAME=FILE…`".into()),
    }
    Ok(())
}

fn judge(count: usize, readers: &[&str]) -> Result<(), Box<dyn Error>> {
    let bodies = bodies(count);
    let mut found: BTreeMap<String, Vec<Option<Vec<Found>>>> = BTreeMap::new();
    for reader in readers {
        let (name, file) = reader.split_once('=').ok_or("a reader is NAME=FILE")?;
        let lines = fs::read_to_string(file)?;
        let all: Result<Vec<_>, _> = lines.lines().map(serde_json::from_str).collect();
        let all: Vec<Option<Vec<Found>>> = all?;
        if all.len() != bodies.len() {
            return Err(format!("{name} read {} of {} bodies", all.len(), bodies.len()).into());
        }
        found.insert(name.to_owned(), all);
    }
    found.insert("serde_json".to_owned(), bodies.iter().map(|body| own(body)).collect());
    let policies: Result<Vec<Policy>, String> = RULES.iter().map(policy).collect();
    let policies = policies?;
    let (mut rejected, mut denied, mut decided) = (0, 0, 0);
    let mut differ = Vec::new();
    for (at, body) in bodies.iter().enumerate() {
        let shown = String::from_utf8_lossy(body);
        let Some(arguments) = passes(body) else {
            rejected += 1;
            continue;
        };
        for (rule, policy) in RULES.iter().zip(&policies) {
            let Some(matched) = matches(policy, &arguments) else {
                denied += 1;
                continue;
            };
            decided += 1;
            for (name, all) in &found {
                let Some(Some(read)) = all.get(at) else { continue };
                let read = read.get(rule.0).ok_or("a reader has left out a path")?;
                if truth(rule, read)?.is_some_and(|truth| truth != matched) {
                    let (_, path, op, value) = rule;
                    differ.push(format!(
                        "{shown:?}: `{path} {op} {value}` is {matched} to the policy, but {name} reads {read:?}"
                    ));
                }
            }
        }
    }
    println!(
        "{} bodies: {rejected} rejected; of the rest {decided} conditions decided, {denied} denied as unclear, {} read otherwise",
        bodies.len(),
        differ.len()
    );
    for line in differ.iter().take(20) {
        println!("{line}");
    }
    // What is all rejected proves nothing.
    if !differ.is_empty() || decided < count || denied < count / 10 || rejected < count / 20 {
        return Err("the readers do not agree with the policy, or too little was compared".into());
    }
    Ok(())
}

/// The arguments, if a message with them passes the envelope.
fn passes(body: &[u8]) -> Option<String> {
    let head =
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":"#;
    let message = [head.as_slice(), body, b"}}"].concat();
    match parse_agent(&message, &Limits::default()) {
        Ok(Incoming::One(Message::Request(_))) => String::from_utf8(body.to_vec()).ok(),
        _ => None,
    }
}

fn policy(rule: &(usize, &str, &str, &str)) -> Result<Policy, String> {
    let (_, path, op, value) = rule;
    let document = format!(
        r#"{{"version":"1","default":"allow","tools":{{"x":{{"deny_if":[{{"conditions":[{{"path":"{path}","op":"{op}","value":{value}}}]}}]}}}}}}"#
    );
    let loaded = Policy::load("p", &document, &Known::default());
    loaded.policy.ok_or_else(|| format!("{document}: {:?}", loaded.problems))
}

/// Whether the rule matches; none if it cannot be decided, which denies.
fn matches(policy: &Policy, arguments: &str) -> Option<bool> {
    let call = Call::new("s", "x", Class::Other, arguments);
    let verdict = decide(policy, &call, &UNUSED, Timestamp::UNIX_EPOCH);
    match verdict.effect {
        Effect::Allow => Some(false),
        _ if verdict.message.contains("cannot decide") => None,
        _ => Some(true),
    }
}

/// What serde's own reader finds.
fn own(body: &[u8]) -> Option<Vec<Found>> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let tell = |pointer: &str| {
        let (t, v) = match value.pointer(pointer) {
            None => ("absent", String::new()),
            Some(Value::Null) => ("null", String::new()),
            Some(Value::Bool(flag)) => ("bool", flag.to_string()),
            Some(Value::Number(number)) => ("num", number.to_string()),
            Some(Value::String(text)) => ("str", HEXLOWER.encode(text.as_bytes())),
            Some(Value::Array(_) | Value::Object(_)) => ("other", String::new()),
        };
        Found { t: t.to_owned(), v }
    };
    Some(["/all", "/amount", "/id", "/s", "/o/k", "/l/0"].map(tell).into())
}

/// Whether a condition holds of what a reader found; none if that cannot be told from it.
fn truth(
    (_, _, op, value): &(usize, &str, &str, &str),
    found: &Found,
) -> Result<Option<bool>, Box<dyn Error>> {
    let wanted: Vec<Value> = match serde_json::from_str(value)? {
        Value::Array(all) => all,
        one => vec![one],
    };
    Ok(match (*op, found.t.as_str()) {
        ("exists", "null or absent") | ("contains", "other") => None,
        ("exists", kind) => Some(kind != "absent"),
        ("eq" | "in", _) => Some(wanted.iter().any(|wanted| equal(found, wanted))),
        ("contains", "str") => Some(
            wanted
                .iter()
                .filter_map(Value::as_str)
                .any(|part| found.v.contains(&HEXLOWER.encode(part.as_bytes()))),
        ),
        ("gt" | "gte" | "lte", "num") => {
            let limit = wanted.first().map(Value::to_string).unwrap_or_default();
            let order = compare(&found.v, &limit);
            order.map(|order| match *op {
                "gt" => order.is_gt(),
                "gte" => order.is_ge(),
                _ => order.is_le(),
            })
        }
        _ => Some(false),
    })
}

fn equal(found: &Found, wanted: &Value) -> bool {
    match (found.t.as_str(), wanted) {
        ("bool", Value::Bool(flag)) => found.v == flag.to_string(),
        ("num", Value::Number(number)) => {
            compare(&found.v, &number.to_string()).is_some_and(std::cmp::Ordering::is_eq)
        }
        ("str", Value::String(text)) => found.v == HEXLOWER.encode(text.as_bytes()),
        _ => false,
    }
}

/// Integers are compared as such where the reader has kept them, and doubles as doubles: a reader
/// that rounds (its numbers end in `f`) has rounded what it compares with too.
fn compare(a: &str, b: &str) -> Option<std::cmp::Ordering> {
    let (a, rounds) = a.strip_suffix('f').filter(|a| *a != "in").map_or((a, false), |a| (a, true));
    if rounds {
        return a.parse::<f64>().ok()?.partial_cmp(&b.parse::<f64>().ok()?);
    }
    if let (Ok(a), Ok(b)) = (a.parse::<i128>(), b.parse::<i128>()) {
        return Some(a.cmp(&b));
    }
    a.parse::<f64>().ok()?.partial_cmp(&b.parse::<f64>().ok()?)
}

const KEYS: &[&str] = &[
    "all",
    "all",
    "all",
    "amount",
    "amount",
    "amount",
    "amount",
    "id",
    "id",
    "id",
    "s",
    "s",
    "o",
    "o",
    "o",
    "l",
    "l",
    "ALL",
    "All",
    "aLl",
    "a\\u006cl",
    "\\u0041ll",
    "ａll",
    "all ",
    " all",
    "a\\u200bll",
    "all\\u0000",
    "Amount",
    "amounT",
    "am\\u00adount",
    "\\u0061mount",
    "ID",
    "Id",
    "ıd",
    "İd",
    "ⅰd",
    "S",
    "ſ",
    "O",
    "L",
    "other",
    "",
];

const VALUES: &[&str] = &[
    "true",
    "false",
    "null",
    "0",
    "-0",
    "0.0",
    "0e5",
    "0e400",
    "0e9999999999",
    "-0e99999999999",
    "1e-400",
    "-1e-400",
    "1e400",
    "-1e400",
    "1e309",
    "5e-324",
    "2e-324",
    "1e-323",
    "0.1",
    "0.10",
    "1e-1",
    "0.10000000000000000555",
    "0.1000000000000000055511151231257827",
    "0.09999999999999999",
    "7",
    "7.0",
    "70e-1",
    "7.0000000000000000001",
    "10",
    "10.000000000000000001",
    "1e1",
    "1E+1",
    "9.9999999999999999999",
    "11",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9007199254740994",
    "9007199254740992.0",
    "9007199254740993.0",
    "9.007199254740993e15",
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678901234567890",
    "\"a\"",
    "\"A\"",
    "\"\\u0061\"",
    "\"a\\u0000\"",
    "\"a \"",
    "\"b\"",
    "\"1\"",
    "\"true\"",
    "\"ａ\"",
    "\"x\"",
    "\"\\u0078\"",
    "\"\\ud83d\\ude00x\"",
    "\"\\ud800x\"",
    "\"\\udc00\"",
    "\"\\/x\"",
    "\"\\\"x\"",
    "\"\"",
    "{\"k\":true}",
    "{\"k\":false}",
    "{\"K\":true}",
    "{\"k\":false,\"K\":true}",
    "{\"\\u212a\":true}",
    "{\"k\":false,\"\\u006b\":true}",
    "{\"k\":true,\"k\":false}",
    "{\"k\":{\"k\":true}}",
    "{}",
    "[]",
    "[1]",
    "[1.0]",
    "[1e0]",
    "[true,1]",
    "[\"1\"]",
    "[1.0000000000000000001]",
    "[[1]]",
];

/// What is no JSON, though some readers take it.
const BROKEN: &[&str] = &[
    "[1,]",
    "NaN",
    "Infinity",
    "-Infinity",
    "01",
    "+1",
    ".5",
    "1.",
    "0x10",
    "1_000",
    "'a'",
    "True",
    "undefined",
    "\"\\x41\"",
];

/// The same bodies for the same count.
fn bodies(count: usize) -> Vec<Vec<u8>> {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    (0..count).map(|_| body(&mut dice)).collect()
}

fn body(dice: &mut Dice) -> Vec<u8> {
    // Most bodies are JSON, else most would be rejected and nothing compared.
    let values = if dice.below(8) == 0 { BROKEN } else { VALUES };
    let blank = ["", "", "", " ", "\n", "\t"];
    let mut text = String::from("{");
    for member in 0..dice.below(6) {
        let comma = if member == 0 { "" } else { "," };
        let key = dice.pick(KEYS);
        let from = if dice.below(4) == 0 { values } else { VALUES };
        let value = dice.pick(from);
        let (before, after) = (dice.pick(&blank), dice.pick(&blank));
        text.extend([comma, before, "\"", key, "\"", after, ":", before, value, after]);
    }
    text.push('}');
    let mut bytes = text.into_bytes();
    match dice.below(40) {
        0 => bytes.truncate(dice.below(bytes.len())),
        1 => bytes.insert(dice.below(bytes.len()), 0xff),
        2 => bytes.insert(dice.below(bytes.len()), 0x0c),
        3 => bytes.splice(0..0, "\u{feff}".bytes()).for_each(drop),
        4 => bytes.splice(1..1, "/**/".bytes()).for_each(drop),
        5 => bytes.splice(1..1, "\u{a0}".bytes()).for_each(drop),
        6 => bytes.insert(bytes.len() - 1, b','),
        7 => bytes.insert(dice.below(bytes.len()), 0),
        _ => {}
    }
    bytes
}

/// A small generator, the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % end.max(1)
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from.get(self.below(from.len())).copied().unwrap_or_default()
    }
}
