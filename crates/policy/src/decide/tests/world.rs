//! Random worlds: documents, calls and time, in plain structures of their own that are written out
//! as JSON for the engine and read directly by the reference interpreter.

use std::collections::BTreeMap;

use toolgate_dice::Dice;

/// Parts of a world that may be there or not.
trait Maybe: Sized {
    fn some<T>(&mut self, percent: u64, make: impl FnOnce(&mut Self) -> T) -> Option<T>;
    fn several<T>(&mut self, percent: u64, make: impl Fn(&mut Self) -> T) -> Vec<T>;
}

impl Maybe for Dice {
    fn some<T>(&mut self, percent: u64, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.chance(percent) { Some(make(self)) } else { None }
    }

    fn several<T>(&mut self, percent: u64, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        let mut out = Vec::new();
        while out.len() < 2 && self.chance(percent) {
            out.push(make(self));
        }
        out
    }
}

/// JSON with numbers in hundredths, each with some spelling.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum J {
    Null,
    Bool(bool),
    Num(i64, String),
    Str(String),
    List(Vec<J>),
    Obj(Vec<(String, J)>),
}

impl J {
    pub(super) fn write(&self) -> String {
        match self {
            J::Null => "null".into(),
            J::Bool(b) => b.to_string(),
            J::Num(_, text) => text.clone(),
            J::Str(s) => format!("{s:?}"),
            J::List(items) => {
                format!("[{}]", items.iter().map(J::write).collect::<Vec<_>>().join(","))
            }
            J::Obj(members) => {
                let members: Vec<String> =
                    members.iter().map(|(k, v)| format!("{k:?}:{}", v.write())).collect();
                format!("{{{}}}", members.join(","))
            }
        }
    }
}

pub(super) fn number(rng: &mut Dice, hundredths: i64) -> J {
    let (sign, abs) = (if hundredths < 0 { "-" } else { "" }, hundredths.abs());
    let decimal = format!("{sign}{}.{:02}", abs / 100, abs % 100);
    let text = match rng.below(3) {
        0 if abs % 100 == 0 => format!("{sign}{}", abs / 100),
        1 => format!("{hundredths}e-2"),
        _ => decimal,
    };
    J::Num(hundredths, text)
}

const NUMBERS: [i64; 8] = [0, 100, 200, 150, 500, 1000, -100, 10];
const STRINGS: [&str; 6] = ["a", "ab", "b", "bb", "cab", ""];
/// URLs and the host a browser sees.
pub(super) const URLS: [(&str, Option<&str>); 6] = [
    ("https://a.com/x", Some("a.com")),
    ("http://u@B.com:80", Some("b.com")),
    ("https://a.com.b.com", Some("a.com.b.com")),
    ("https://b.com\\@a.com", None),
    ("a.com", None),
    ("nonsense", None),
];
/// A pattern and what it means, for `regex` and for `matches`.
pub(super) type Pattern = (&'static str, fn(&str) -> bool, fn(&str) -> bool);
pub(super) const PATTERNS: [Pattern; 4] = [
    ("^a", |s| s.starts_with('a'), |s| s == "a"),
    ("b", |s| s.contains('b'), |s| s == "b"),
    ("[ab]+", |s| s.contains(['a', 'b']), |s| !s.is_empty() && s.chars().all(|c| "ab".contains(c))),
    ("a.*", |s| s.contains('a'), |s| s.starts_with('a')),
];

fn scalar(rng: &mut Dice) -> J {
    match rng.below(10) {
        0 => J::Null,
        1 => J::Bool(rng.chance(50)),
        2 => J::Str(rng.pick(&URLS).0.into()),
        3..=5 => J::Str(rng.pick(&STRINGS).into()),
        _ => {
            let n = rng.pick(&NUMBERS);
            number(rng, n)
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Cond {
    pub(super) path: &'static str,
    pub(super) op: &'static str,
    pub(super) value: J,
}

#[derive(Clone, Debug)]
pub(super) enum Pred {
    All(Vec<Cond>),
    Any(Vec<Pred>),
    Not(Box<Pred>),
}

#[derive(Clone, Debug)]
pub(super) struct Lim {
    pub(super) counter: &'static str,
    pub(super) window: Win,
    pub(super) max: i64,
    pub(super) scope: &'static str,
    /// A fixed increment, or an argument.
    pub(super) by: Result<i64, &'static str>,
    pub(super) sliding: bool,
}

/// Enforced, or in shadow, for ever or until a day.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Shade {
    #[default]
    No,
    Always,
    Until(i64),
}

/// A window as written, and its length.
pub(super) type Win = (&'static str, i64);

#[derive(Clone, Debug)]
pub(super) struct IRule {
    pub(super) name: String,
    pub(super) action: &'static str,
    pub(super) conditions: Vec<Cond>,
    pub(super) rate: Option<(i64, Win)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Ent {
    pub(super) action: Option<&'static str>,
    pub(super) require: Vec<Pred>,
    pub(super) deny_if: Vec<Pred>,
    pub(super) approve: bool,
    pub(super) approve_if: Vec<Pred>,
    pub(super) limits: Vec<Lim>,
    pub(super) rate_limit: Option<(i64, Win)>,
    pub(super) concurrency: Option<(i64, &'static str)>,
    pub(super) unless: Option<Win>,
    pub(super) rules: Vec<IRule>,
    pub(super) shadow: Shade,
}

#[derive(Clone, Debug)]
pub(super) struct Doc {
    pub(super) default_allow: bool,
    pub(super) shadow: Shade,
    /// Name and offset in seconds.
    pub(super) zone: (&'static str, i64),
    pub(super) hide: Vec<&'static str>,
    pub(super) looped: Option<(i64, Win)>,
    pub(super) all_tools: Option<Ent>,
    pub(super) classes: BTreeMap<&'static str, Ent>,
    pub(super) tools: BTreeMap<&'static str, Ent>,
}

#[derive(Clone, Debug)]
pub(super) struct RCall {
    pub(super) at: i64,
    pub(super) server: &'static str,
    pub(super) tool: &'static str,
    pub(super) class: &'static str,
    pub(super) grant: &'static str,
    pub(super) identity: Option<&'static str>,
    pub(super) groups: Vec<String>,
    pub(super) kind: Option<&'static str>,
    pub(super) target: &'static str,
    pub(super) agent_session: &'static str,
    pub(super) args: J,
    /// 0 none, 1 pending, 2 approved.
    pub(super) approval: u64,
    /// Everything in flight ends before this call.
    pub(super) settle: bool,
}

pub(super) const TOOLS: [&str; 5] = ["get_a", "get_b", "send", "delete_x", "x"];
pub(super) const CLASSES: [&str; 4] = ["read", "write", "destructive", "other"];
const KEYS: [&str; 14] = [
    "get_a", "send", "x", "s1/get_a", "s2/send", "get_*", "*", "*_a", "s1/*", "?", "*/*", "s*/x",
    "[dx]*", "delete_?",
];
const HIDES: [&str; 5] = ["delete_x", "s1/x", "get_?", "s2/*", "*_b"];
const ARGS: [&str; 10] = [
    "args.a",
    "args.b",
    "args.n",
    "args.o.k",
    "args.l[any]",
    "args.l[all]",
    "args.l[0]",
    "args.l[any].k",
    "args.\"a.b\"",
    "args.o.k.z",
];
const FACTS: [&str; 10] = [
    "grant.label",
    "identity.name",
    "identity.groups",
    "identity.groups[any]",
    "server",
    "tool",
    "risk.class",
    "session.kind",
    "time.hour",
    "time.weekday",
];
pub(super) const OPS: [&str; 16] = [
    "eq",
    "neq",
    "in",
    "not_in",
    "lt",
    "lte",
    "gt",
    "gte",
    "regex",
    "contains",
    "exists",
    "starts_with",
    "ends_with",
    "matches",
    "host_in",
    "owned",
];
const INTERCEPT_OPS: usize = 11;
pub(super) const SCOPES: [&str; 5] = ["grant", "identity", "session", "target", "global"];
const WINDOWS: [Win; 5] =
    [("minute", 60), ("hour", 3600), ("day", 86_400), ("90s", 90), ("2d", 172_800)];

/// 2026-01-05T00:00:00Z, a Monday.
pub(super) const START: i64 = 1_767_571_200;

fn operand(rng: &mut Dice, path: &str, op: &'static str) -> J {
    if path == "time.weekday" && matches!(op, "eq" | "neq" | "lt" | "lte" | "gt" | "gte") {
        let day = 100 * (1 + rng.below(7));
        return J::Num(day, (day / 100).to_string());
    }
    match op {
        "in" | "not_in" if path == "time.weekday" => {
            J::List(vec![J::Num(100, "1".into()), J::Num(300, "3".into())])
        }
        "in" | "not_in" if path == "risk.class" => {
            J::List((0..3).map(|_| J::Str(rng.pick(&CLASSES).into())).collect())
        }
        "in" | "not_in" => J::List((0..3).map(|_| scalar(rng)).collect()),
        "lt" | "lte" | "gt" | "gte" => {
            let n = rng.pick(&NUMBERS);
            number(rng, n)
        }
        "regex" | "matches" => J::Str(rng.pick(&PATTERNS).0.into()),
        "exists" => J::Bool(rng.chance(60)),
        "starts_with" | "ends_with" => J::Str(rng.pick(&["a", "b"]).into()),
        "host_in" => J::List(vec![J::Str(rng.pick(&["a.com", "B.com"]).into())]),
        "owned" => J::Str("job".into()),
        _ => match path {
            "grant.label" => J::Str(rng.pick(&["g1", "g2"]).into()),
            "identity.name" | "identity.groups[any]" | "identity.groups" => {
                J::Str(rng.pick(&["i1", "ops"]).into())
            }
            "server" => J::Str(rng.pick(&["s1", "s2"]).into()),
            "tool" => J::Str(rng.pick(&TOOLS).into()),
            "risk.class" => J::Str(rng.pick(&CLASSES).into()),
            "session.kind" => J::Str("1c".into()),
            _ => scalar(rng),
        },
    }
}

fn condition(rng: &mut Dice) -> Cond {
    let path = if rng.chance(80) { rng.pick(&ARGS) } else { rng.pick(&FACTS) };
    let mut op = rng.pick(&OPS);
    if path == "time.weekday"
        && !matches!(op, "eq" | "neq" | "in" | "not_in" | "lt" | "lte" | "gt" | "gte" | "exists")
    {
        op = "in";
    }
    Cond { path, op, value: operand(rng, path, op) }
}

fn predicate(rng: &mut Dice, depth: usize) -> Pred {
    match rng.below(10) {
        0 if depth < 2 => Pred::Any((0..2).map(|_| predicate(rng, depth + 1)).collect()),
        1 | 2 if depth < 2 => Pred::Not(Box::new(predicate(rng, depth + 1))),
        _ => {
            let count = if rng.chance(3) { 0 } else { 1 + rng.below(2) };
            Pred::All((0..count).map(|_| condition(rng)).collect())
        }
    }
}

fn limits(rng: &mut Dice) -> Vec<Lim> {
    let mut names = vec!["c1", "c2", "{tool}_c", "global.g"];
    let mut out = Vec::new();
    while out.len() < 2 && rng.chance(25) {
        let at = rng.below(names.len());
        let counter = names.remove(at);
        // All uses of a global counter must agree.
        let global = counter.starts_with("global.");
        let by = if rng.chance(40) { Err("args.n") } else { Ok(rng.pick(&[100, 200])) };
        out.push(Lim {
            counter,
            window: if global { WINDOWS[0] } else { rng.pick(&WINDOWS) },
            max: rng.pick(&[100, 200, 300, 500]),
            scope: if global { "grant" } else { rng.pick(&SCOPES) },
            by,
            sliding: !global && rng.chance(35),
        });
    }
    out
}

fn rules(rng: &mut Dice) -> Vec<IRule> {
    let mut out: Vec<IRule> = Vec::new();
    while out.len() < 2 && rng.chance(16) {
        let name = format!("r{}", out.len());
        let rated = out.iter().any(|r| r.rate.is_some());
        let (action, conditions, rate) = match rng.below(10) {
            0 => ("deny", vec![], None),
            1 | 2 if !rated => {
                ("evaluate", vec![], Some((rng.pick(&[100, 200]), rng.pick(&WINDOWS[..3]))))
            }
            3 | 4 => ("require_approval", intercept_conditions(rng), None),
            _ => ("evaluate", intercept_conditions(rng), None),
        };
        out.push(IRule { name, action, conditions, rate });
    }
    out
}

fn intercept_conditions(rng: &mut Dice) -> Vec<Cond> {
    (0..=rng.below(2))
        .map(|_| {
            let path = rng.pick(&["args.a", "args.b", "args.n", "args.o.k", "args.l"]);
            let op = rng.pick(&OPS[..INTERCEPT_OPS]);
            Cond { path, op, value: operand(rng, path, op) }
        })
        .collect()
}

fn shadow(rng: &mut Dice, percent: u64) -> Shade {
    match rng.chance(percent) {
        false => Shade::No,
        true if rng.chance(50) => Shade::Always,
        true => Shade::Until(START + 86_400 * rng.below(3)),
    }
}

fn entry(rng: &mut Dice, place: char) -> Ent {
    let actions: &[&str] = match place {
        't' => &["allow", "deny", "hide", "hide", "require_approval"],
        'c' => &["allow", "allow", "allow", "deny", "hide"],
        _ => &[],
    };
    Ent {
        action: if actions.is_empty() { None } else { rng.some(32, |r| r.pick(actions)) },
        require: rng.several(9, |r| predicate(r, 0)),
        deny_if: rng.several(13, |r| predicate(r, 0)),
        approve: rng.chance(33),
        approve_if: rng.several(24, |r| predicate(r, 0)),
        limits: limits(rng),
        rate_limit: rng.some(12, |r| (r.pick(&[100, 200, 300]), r.pick(&WINDOWS))),
        concurrency: rng.some(10, |r| (r.pick(&[1, 2]), r.pick(&SCOPES))),
        unless: rng.some(29, |r| r.pick(&WINDOWS)),
        rules: rules(rng),
        shadow: shadow(rng, 14),
    }
}

pub(super) fn document(rng: &mut Dice) -> Doc {
    let mut tools = BTreeMap::new();
    for _ in 0..rng.below(5) {
        tools.insert(rng.pick(&KEYS), entry(rng, 't'));
    }
    let mut classes = BTreeMap::new();
    for _ in 0..rng.below(3) {
        classes.insert(rng.pick(&CLASSES), entry(rng, 'c'));
    }
    let mut hide = rng.several(20, |r| r.pick(&HIDES));
    hide.dedup();
    Doc {
        default_allow: rng.chance(80),
        shadow: shadow(rng, 7),
        zone: rng.pick(&[("UTC", 0), ("Europe/Moscow", 10_800), ("Asia/Kolkata", 19_800)]),
        hide,
        looped: rng.some(15, |r| (r.pick(&[1, 2]), r.pick(&WINDOWS))),
        all_tools: rng.some(25, |r| entry(r, 'a')),
        classes,
        tools,
    }
}

fn arguments(rng: &mut Dice) -> J {
    let mut members = Vec::new();
    for (key, percent) in [("a", 75), ("b", 60), ("n", 85), ("a.b", 40)] {
        if rng.chance(percent) {
            let n = rng.pick(&NUMBERS);
            let value = if key == "n" && rng.chance(85) { number(rng, n) } else { scalar(rng) };
            members.push((key.to_owned(), value));
        }
    }
    if rng.chance(50) {
        let object = if rng.chance(80) {
            J::Obj(if rng.chance(80) { vec![("k".into(), scalar(rng))] } else { vec![] })
        } else {
            scalar(rng)
        };
        members.push(("o".into(), object));
    }
    if rng.chance(60) {
        let item = |rng: &mut Dice| {
            if rng.chance(30) { J::Obj(vec![("k".into(), scalar(rng))]) } else { scalar(rng) }
        };
        let list = if rng.chance(85) {
            J::List((0..rng.below(3)).map(|_| item(rng)).collect())
        } else {
            scalar(rng)
        };
        members.push(("l".into(), list));
    }
    J::Obj(members)
}

/// A few calls in a row, often alike, so that counters, repeats and loops matter.
pub(super) fn calls(rng: &mut Dice, count: usize) -> Vec<RCall> {
    let mut out: Vec<RCall> = Vec::new();
    let mut at = START + rng.below(86_400);
    for _ in 0..count {
        at += rng.pick(&[0, 0, 1, 20, 60, 89, 90, 3600, 80_000]);
        let mut call = match out.last() {
            Some(last) if rng.chance(55) => last.clone(),
            _ => RCall {
                at,
                server: rng.pick(&["s1", "s2", "sessions"]),
                tool: rng.pick(&TOOLS),
                class: rng.pick(&CLASSES),
                grant: rng.pick(&["g1", "g2"]),
                identity: rng.pick(&[None, Some("i1"), Some("i2")]),
                groups: rng.pick(&[vec![], vec!["ops".to_owned()], vec!["ops".into(), "a".into()]]),
                kind: rng.pick(&[None, Some("1c")]),
                target: rng.pick(&["t1", "t2"]),
                agent_session: rng.pick(&["as1", "as2"]),
                args: arguments(rng),
                approval: 0,
                settle: false,
            },
        };
        call.at = at;
        if rng.chance(20) {
            call.target = rng.pick(&["t1", "t2"]);
            call.grant = rng.pick(&["g1", "g2"]);
        }
        if rng.chance(15) {
            call.args = arguments(rng);
        }
        call.approval = if rng.chance(80) { 0 } else { 1 + rng.below(2) };
        call.settle = rng.chance(30);
        out.push(call);
    }
    out
}
