//! Questions to the user of an agent, which the agent's own client asks.

use tokio::sync::oneshot;
use toolgate_json::{members, text};

/// A question to the user of an agent. Dropping it withdraws the question.
pub struct UserQuestion {
    answer: oneshot::Receiver<Option<String>>,
    _withdrawn_on_drop: Box<dyn Send + Sync>,
}

/// What the user of an agent answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserAnswer {
    /// Send the call.
    Accept,
    /// Do not send it.
    Decline,
    /// The question was closed without an answer.
    Nothing,
}

impl UserQuestion {
    /// A question whose answer, the raw result of the client, comes through `answer`; `None` is an
    /// error of the client. `on_drop` withdraws the question.
    pub fn new(
        answer: oneshot::Receiver<Option<String>>,
        on_drop: impl Send + Sync + 'static,
    ) -> Self {
        Self { answer, _withdrawn_on_drop: Box::new(on_drop) }
    }

    /// Waits for the answer. May be dropped and called again.
    pub(crate) async fn answer(&mut self) -> UserAnswer {
        let result = (&mut self.answer).await.ok().flatten();
        UserAnswer::of(result.as_deref().unwrap_or_default())
    }
}

impl UserAnswer {
    /// Parses the result of `elicitation/create`.
    fn of(result: &str) -> Self {
        let [action] = members(result, ["action"]).unwrap_or_default();
        match action.and_then(text).as_deref() {
            Some("accept") => Self::Accept,
            Some("decline") => Self::Decline,
            _ => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_accept_accepts() {
        let cases = [
            (r#"{"action":"accept"}"#, UserAnswer::Accept),
            (r#"{"action":"accept","content":{"x":1}}"#, UserAnswer::Accept),
            (r#"{"action":"\u0061ccept"}"#, UserAnswer::Accept),
            (r#"{"action":"decline"}"#, UserAnswer::Decline),
            (r#"{"action":"cancel"}"#, UserAnswer::Nothing),
            (r#"{"action":"Accept"}"#, UserAnswer::Nothing),
            (r#"{"action":true}"#, UserAnswer::Nothing),
            (r#"{"Action":"accept"}"#, UserAnswer::Nothing),
            (r#"{"action":"decline","action":"accept"}"#, UserAnswer::Nothing),
            (r#"{"action":"accept","action":"decline"}"#, UserAnswer::Nothing),
            (r#"{"content":{"action":"accept"}}"#, UserAnswer::Nothing),
            (r#"["accept"]"#, UserAnswer::Nothing),
            ("", UserAnswer::Nothing),
        ];
        for (result, answer) in cases {
            assert_eq!(UserAnswer::of(result), answer, "{result}");
        }
    }
}
