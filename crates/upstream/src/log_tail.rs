//! The last lines that a server printed, for people.
//!
//! Invariant: bounded in lines and bytes, however much a server prints.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// How many lines are kept.
const LINES: usize = 100;
/// How many bytes of one line are kept.
const LONGEST: usize = 512;

/// The last lines of a server.
#[derive(Debug, Default)]
pub struct LogTail(Mutex<VecDeque<String>>);

impl LogTail {
    /// Adds a line; the oldest one gives way.
    pub fn push(&self, line: &str) {
        let mut end = line.len().min(LONGEST);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        let mut lines = self.0.lock();
        if lines.len() >= LINES {
            lines.pop_front();
        }
        lines.push_back(line.get(..end).unwrap_or_default().to_owned());
    }

    /// The lines, the oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_long_ones_cut() {
        let tail = LogTail::default();
        for n in 0..LINES + 5 {
            tail.push(&n.to_string());
        }
        let lines = tail.lines();
        assert_eq!((lines.len(), &*lines[0]), (LINES, "5"));
        tail.push(&"\u{416}".repeat(LONGEST));
        assert_eq!(tail.lines().last().unwrap().len(), LONGEST);
    }
}
