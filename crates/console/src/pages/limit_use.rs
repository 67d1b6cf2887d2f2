//! The use of a limit, as a bar.

use serde::Deserialize;
use serde_json::Value;

/// The use of a limit, of the API.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LimitUse {
    counter: String,
    used: Value,
    max: Value,
    window: String,
    /// Its value after the call.
    after: Option<String>,
}

/// A limit with its use.
pub(crate) struct LimitLine {
    pub(crate) name: String,
    pub(crate) used: String,
    /// After the call; empty if it is about no call.
    pub(crate) after: String,
    pub(crate) max: String,
    pub(crate) percent: u32,
    /// The call would exceed it.
    pub(crate) is_spent: bool,
}

impl LimitUse {
    /// The line about it.
    pub(crate) fn line(&self) -> LimitLine {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let number = |text: &str| text.parse::<f64>().unwrap_or_default();
        let (used, max) = (text(&self.used), text(&self.max));
        let after = self.after.clone().unwrap_or_default();
        let reached = number(if after.is_empty() { &used } else { &after });
        let share = if number(&max) > 0.0 { reached * 100.0 / number(&max) } else { 100.0 };
        let percent = (0..=100).rev().step_by(5).find(|step| f64::from(*step) <= share);
        LimitLine {
            name: format!("{} / {}", self.counter, self.window),
            is_spent: !after.is_empty() && reached > number(&max),
            percent: percent.unwrap_or(0),
            used,
            after,
            max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(used: u32, max: u32, after: Option<&str>) -> LimitLine {
        let (counter, window) = ("close_rate".to_owned(), "minute".to_owned());
        let after = after.map(str::to_owned);
        LimitUse { counter, used: used.into(), max: max.into(), window, after }.line()
    }

    #[test]
    fn a_bar_shows_the_use_after_the_call() {
        assert_eq!(line(3, 10, None).percent, 30);
        assert_eq!(line(3, 10, Some("5")).percent, 50);
        assert_eq!(line(0, 0, None).percent, 100);
        assert_eq!((line(99, 10, None).percent, line(0, 10, None).percent), (100, 0));
    }

    #[test]
    fn a_call_that_would_exceed_a_limit_is_marked() {
        assert!(!line(9, 10, Some("10")).is_spent);
        assert!(line(10, 10, Some("11")).is_spent);
    }
}
