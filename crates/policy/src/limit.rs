//! The arithmetic of limits: which counter a call takes, how much, whether it fits, and when it
//! would.

use jiff::Timestamp;
use toolgate_json::push_quoted;

use crate::{
    Amount, AmountError, Call, Period, Policy, Reservation, Take, Unavailable, Usage, Window,
    budget,
    json::Value,
    model::{Concurrency, Increment, Limit, Scope},
    truth::Facts,
    window::seconds_until,
};

/// A limit that applies to the call at hand.
pub(crate) struct Applied<'p> {
    pub(crate) limit: &'p Limit,
    pub(crate) key: String,
    pub(crate) amount: Amount,
    pub(crate) shadow: bool,
}

/// Why a limit cannot be taken.
pub(crate) enum Failure {
    /// It is spent; the seconds after which the call would fit, if ever.
    Spent(Option<u64>),
    /// The counters cannot be read.
    Unavailable,
}

/// How much the call adds. `Err(None)`: more than any limit holds.
pub(crate) fn amount(limit: &Limit, facts: &Facts<'_>) -> Result<Amount, Option<&'static str>> {
    let path = match &limit.increment {
        Increment::Fixed(amount) => return Ok(*amount),
        Increment::From(path) => path,
    };
    let text = match facts.value(path) {
        Ok(Some(Value::Number(text))) => text,
        Ok(Some(_)) => return Err(Some("is not a number")),
        Ok(None) => return Err(Some("is missing")),
        Err(_) if facts.budget.is_spent() => return Err(Some(budget::OVER)),
        Err(_) => return Err(Some("cannot be read, the arguments are not clean JSON")),
    };
    match Amount::parse(text) {
        Ok(amount) => Ok(amount),
        Err(AmountError::TooLarge) => Err(None),
        Err(AmountError::Negative) => Err(Some("is negative")),
        Err(AmountError::TooFine) => Err(Some("has more than 18 decimal places")),
        Err(AmountError::NotANumber) => Err(Some("is a number out of range")),
    }
}

/// Whether the amount fits, and what to reserve.
pub(crate) fn check(
    applied: &Applied<'_>,
    policy: &Policy,
    usage: &dyn Usage,
    now: Timestamp,
) -> Result<Take, Failure> {
    let Applied { limit, key, amount, .. } = applied;
    let (amount, max, window) = (*amount, limit.max, limit.window);
    if limit.sliding {
        sliding(usage, key, amount, max, window, now)?;
        return Ok(Take::Sliding { window, amount, max });
    }
    let period = period(limit, policy, now);
    let used = usage.used(key, period).map_err(|Unavailable| Failure::Unavailable)?;
    if used.plus(amount).is_some_and(|sum| sum <= max) {
        Ok(Take::Calendar { period, amount, max })
    } else {
        let ever = amount <= max;
        Err(Failure::Spent(ever.then(|| seconds_until(now, period.end))))
    }
}

/// The calendar window a limit is in.
pub(crate) fn period(limit: &Limit, policy: &Policy, now: Timestamp) -> Period {
    let utc = jiff::tz::TimeZone::UTC;
    limit.window.calendar(now, if limit.utc { &utc } else { &policy.document.zone })
}

/// Never more than `max` in any window: what was taken less than a window ago still counts.
fn sliding(
    usage: &dyn Usage,
    key: &str,
    amount: Amount,
    max: Amount,
    window: Window,
    now: Timestamp,
) -> Result<(), Failure> {
    let after = window.before(now);
    let mut log = usage.taken(key, after).map_err(|Unavailable| Failure::Unavailable)?;
    log.retain(|taken| window.after(taken.at) > now);
    log.sort_by_key(|taken| taken.at);
    let sum = log.iter().try_fold(amount, |sum, taken| sum.plus(taken.amount));
    let Some(mut sum) = sum else { return Err(Failure::Spent(None)) };
    if sum <= max {
        return Ok(());
    }
    // The oldest entries leave first; find the one that makes room.
    let mut retry = None;
    for taken in &log {
        if sum <= max {
            break;
        }
        sum = sum.minus(taken.amount);
        retry = Some(window.after(taken.at));
    }
    let fits = sum <= max;
    Err(Failure::Spent(retry.filter(|_| fits).map(|at| seconds_until(now, at))))
}

/// Whether one more call may be in flight.
pub(crate) fn in_flight(
    limit: &Concurrency,
    key: &str,
    usage: &dyn Usage,
) -> Result<Take, Failure> {
    let running = usage.in_flight(key).map_err(|Unavailable| Failure::Unavailable)?;
    if running >= limit.max {
        Err(Failure::Spent(Some(1)))
    } else {
        Ok(Take::InFlight { max: limit.max })
    }
}

/// The whole identity of a limit's counter for this call.
pub(crate) fn counter_key(policy: &Policy, entry: &str, limit: &Limit, call: &Call<'_>) -> String {
    let (owner, name) = match limit.counter.strip_prefix("global.") {
        Some(name) => ("global", name),
        None => (entry, limit.counter.as_str()),
    };
    let mut key = Key::new(&policy.name);
    key.text(owner).text(name);
    if name.contains("{tool}") {
        key.text(call.server).text(call.tool);
    }
    key.scope(limit.scope, call).number(limit.window.as_seconds());
    key.finish()
}

/// The identity of a concurrency limit's counter.
pub(crate) fn in_flight_key(
    policy: &Policy,
    entry: &str,
    limit: &Concurrency,
    call: &Call<'_>,
) -> String {
    let mut key = Key::new(&policy.name);
    key.text(entry).text("concurrency").scope(limit.scope, call);
    key.finish()
}

/// The identity of another entry's Intercept counter.
pub(crate) fn state_key(policy: &Policy, entry: &str, counter: &str, window: Window) -> String {
    let mut key = Key::new(&policy.name);
    key.text(entry).text(counter).text("global").text("").number(window.as_seconds());
    key.finish()
}

/// The identity of a call as `loop` sees it.
pub(crate) fn loop_key(policy: &Policy, call: &Call<'_>, digest: &str, window: Window) -> String {
    let mut key = Key::new(&policy.name);
    key.text("/loop").text(call.grant).text(call.target());
    key.text(call.server).text(call.tool).text(digest).number(window.as_seconds());
    key.finish()
}

/// The identity of a call as `unless_seen_within` sees it.
pub(crate) fn seen_key(call: &Call<'_>, digest: &str) -> String {
    let mut key = Key::new("seen");
    key.text(call.grant).text(call.server).text(call.tool).text(digest);
    key.finish()
}

/// The counter's name as people see it.
pub(crate) fn shown_name(counter: &str, tool: &str) -> String {
    counter.replace("{tool}", tool)
}

/// What a limit of this shape is called in a message: `30 calls per minute`.
pub(crate) fn describe(limit: &Limit) -> String {
    let what = match (&limit.increment, limit.max) {
        (Increment::From(path), max) => format!("a total `{}` of {max}", path.text),
        (Increment::Fixed(_), max) if max == Amount::ONE => "1 call".to_owned(),
        (Increment::Fixed(_), max) => format!("{max} calls"),
    };
    format!("{what} per {}", limit.window)
}

/// A reservation for a limit.
pub(crate) fn reservation(applied: Applied<'_>, take: Take, tool: &str) -> Reservation {
    Reservation {
        rule: applied.limit.rule.clone(),
        counter: shown_name(&applied.limit.counter, tool),
        key: applied.key,
        take,
        enforced: !applied.shadow,
    }
}

/// Builds a key: a JSON list, so that no part can run into the next.
struct Key(String);

impl Key {
    fn new(first: &str) -> Self {
        let mut key = Self(String::with_capacity(96));
        key.0.push('[');
        push_quoted(first, &mut key.0);
        key
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.0.push(',');
        push_quoted(text, &mut self.0);
        self
    }

    fn number(&mut self, number: u32) -> &mut Self {
        self.0.push(',');
        self.0.push_str(&number.to_string());
        self
    }

    fn scope(&mut self, scope: Scope, call: &Call<'_>) -> &mut Self {
        let (word, value) = match scope {
            Scope::Grant => ("grant", call.grant),
            // A grant without an identity is its own.
            Scope::Identity => match call.identity {
                Some(identity) => ("identity", identity.name),
                None => ("grant", call.grant),
            },
            Scope::Session => ("session", call.agent_session.unwrap_or_default()),
            Scope::Target => ("target", call.target()),
            Scope::Global => ("global", ""),
        };
        self.text(word).text(value)
    }

    fn finish(mut self) -> String {
        self.0.push(']');
        self.0
    }
}
