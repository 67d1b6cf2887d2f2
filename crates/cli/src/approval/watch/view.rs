//! What the terminal view shows, as a state machine without effects.
//!
//! Invariant: a key answers only the approval that is shown. The view moves to another one by itself
//! only if it shows none; if the shown one ends, it waits for a key.

use std::collections::HashSet;

use serde_json::Value;

use crate::listing::text;

/// A key of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Approve,
    Deny,
    Next,
    Quit,
    /// Any other.
    Other,
}

/// What a key asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Send this answer to this approval.
    Answer(Key, String),
    /// Show this approval.
    Show(String),
    /// There is no other approval to show.
    Empty,
    Nothing,
    Quit,
}

/// What has changed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Update {
    /// Approvals that were not pending before.
    pub(super) new: Vec<Value>,
    /// Ids of approvals that are not pending any more.
    pub(super) ended: Vec<String>,
    /// The approval that was shown is not pending any more.
    pub(super) shown_ended: Option<String>,
    /// The approval to show now.
    pub(super) show: Option<String>,
}

/// What is on the screen.
#[derive(Debug, Default, PartialEq)]
enum Screen {
    #[default]
    Empty,
    Shown(String),
    /// The approval that was shown has ended.
    Ended,
}

#[derive(Debug, Default)]
pub(super) struct View {
    /// Ids of pending approvals, the oldest first.
    pending: Vec<String>,
    screen: Screen,
}

impl Key {
    pub(super) fn of(byte: u8) -> Self {
        match byte {
            b'a' => Self::Approve,
            b'd' => Self::Deny,
            b'n' => Self::Next,
            // Ctrl-C and Ctrl-D do not reach the shell while keys are read.
            b'q' | 3 | 4 => Self::Quit,
            _ => Self::Other,
        }
    }
}

impl View {
    /// The approvals that are pending now.
    pub(super) fn update(&mut self, pending: &[Value]) -> Update {
        let known: HashSet<&str> = self.pending.iter().map(String::as_str).collect();
        let is_new = |approval: &&Value| text(approval, "id").is_some_and(|id| !known.contains(id));
        let now: HashSet<&str> = pending.iter().filter_map(|it| text(it, "id")).collect();
        let ended = self.pending.iter().filter(|id| !now.contains(id.as_str()));
        let mut update = Update {
            new: pending.iter().filter(is_new).cloned().collect(),
            ended: ended.cloned().collect(),
            ..Update::default()
        };
        let id = |approval: &Value| text(approval, "id").map(str::to_owned);
        self.pending = pending.iter().filter_map(id).collect();
        match &self.screen {
            Screen::Shown(id) if !self.pending.contains(id) => {
                update.shown_ended = Some(id.clone());
                self.screen = Screen::Ended;
            }
            Screen::Empty => {
                update.show = self.pending.first().cloned();
                if let Some(id) = &update.show {
                    self.screen = Screen::Shown(id.clone());
                }
            }
            Screen::Shown(_) | Screen::Ended => {}
        }
        update
    }

    /// The approval that a key answers.
    pub(super) fn shown(&self) -> Option<&str> {
        match &self.screen {
            Screen::Shown(id) => Some(id),
            Screen::Empty | Screen::Ended => None,
        }
    }

    /// A key was pressed.
    pub(super) fn press(&mut self, key: Key) -> Step {
        match (key, &self.screen) {
            (Key::Quit, _) => Step::Quit,
            (Key::Approve | Key::Deny, Screen::Shown(id)) => Step::Answer(key, id.clone()),
            (Key::Next, _) => self.next(),
            _ => Step::Nothing,
        }
    }

    /// The answer to the shown approval was accepted.
    pub(super) fn answered(&mut self) -> Step {
        let Screen::Shown(id) = std::mem::take(&mut self.screen) else { return Step::Nothing };
        let next = self.after(&id).filter(|next| *next != id);
        self.pending.retain(|one| *one != id);
        next.map_or(Step::Empty, |next| self.shows(next))
    }

    fn next(&mut self) -> Step {
        let next = match &self.screen {
            Screen::Shown(id) => self.after(id).filter(|next| next != id),
            Screen::Empty | Screen::Ended => self.pending.first().cloned(),
        };
        if self.screen == Screen::Ended {
            self.screen = Screen::Empty;
        }
        next.map_or(Step::Empty, |next| self.shows(next))
    }

    fn shows(&mut self, id: String) -> Step {
        self.screen = Screen::Shown(id.clone());
        Step::Show(id)
    }

    /// The pending approval after this one; the first one after the last.
    fn after(&self, id: &str) -> Option<String> {
        let at = self.pending.iter().position(|one| one == id);
        let next = at.map_or(0, |at| at + 1);
        self.pending.get(next).or_else(|| self.pending.first()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(ids: &[&str]) -> Vec<Value> {
        ids.iter().map(|id| json!({"id": id})).collect()
    }

    fn shown(id: &str) -> Step {
        Step::Show(id.to_owned())
    }

    #[test]
    fn keys_answer_what_is_shown_and_nothing_else() {
        let mut view = View::default();
        assert_eq!(view.press(Key::Approve), Step::Nothing);
        let update = view.update(&of(&["a", "b"]));
        assert_eq!((update.new.len(), update.show.as_deref()), (2, Some("a")));
        // A new one does not take the place of the one that is read.
        let update = view.update(&of(&["c", "a", "b"]));
        assert_eq!((update.new, update.show), (of(&["c"]), None));
        assert_eq!(view.shown(), Some("a"));
        assert_eq!(view.press(Key::Deny), Step::Answer(Key::Deny, "a".to_owned()));
        assert_eq!(view.press(Key::Next), shown("b"));
        assert_eq!(view.press(Key::Next), shown("c"));
        assert_eq!(view.press(Key::Approve), Step::Answer(Key::Approve, "c".to_owned()));
        assert_eq!(view.answered(), shown("a"));
        assert_eq!((view.press(Key::Other), view.press(Key::Quit)), (Step::Nothing, Step::Quit));
    }

    #[test]
    fn an_approval_that_ends_is_not_replaced_unasked() {
        let mut view = View::default();
        view.update(&of(&["a", "b"]));
        let update = view.update(&of(&["b"]));
        assert_eq!((update.ended, update.show), (vec!["a".to_owned()], None));
        assert_eq!(update.shown_ended.as_deref(), Some("a"));
        assert_eq!(
            (view.press(Key::Approve), view.update(&of(&["b"])).show),
            (Step::Nothing, None)
        );
        assert_eq!(view.press(Key::Next), shown("b"));
        assert_eq!(view.answered(), Step::Empty);
        // Nothing is shown, so the next one is.
        assert_eq!(view.update(&of(&["c"])).show.as_deref(), Some("c"));
    }

    #[test]
    fn bytes_of_keys() {
        let keys = [b'a', b'd', b'n', b'q', 3, 4, b'A', b'\n', 0xff].map(Key::of);
        let expected = [Key::Approve, Key::Deny, Key::Next, Key::Quit, Key::Quit, Key::Quit];
        assert_eq!(keys[..6], expected);
        assert!(keys[6..].iter().all(|key| *key == Key::Other));
    }
}
