//! The difference of two texts, as `diff -u` shows it.

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// Above this many compared pairs of lines the whole middle counts as changed.
const MAX_PAIRS: usize = 4_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Same,
    Old,
    New,
}

/// The difference; empty if there is none.
pub(super) fn unified(name: &str, old: &str, new: &str) -> String {
    let lines = compared(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    if lines.iter().all(|(kind, _)| *kind == Kind::Same) {
        return String::new();
    }
    let near = |at: usize| {
        let from = at.saturating_sub(CONTEXT);
        lines.iter().take(at + CONTEXT + 1).skip(from).any(|(kind, _)| *kind != Kind::Same)
    };
    let mut text = format!("--- {name}\n+++ {name}\n");
    let mut is_cut = false;
    for (at, (kind, line)) in lines.iter().enumerate() {
        if !near(at) {
            is_cut = true;
            continue;
        }
        if std::mem::take(&mut is_cut) {
            text.push_str("@@\n");
        }
        let sign = match kind {
            Kind::Same => ' ',
            Kind::Old => '-',
            Kind::New => '+',
        };
        text.push(sign);
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn compared<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Kind, &'a str)> {
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(new).take_while(same).count();
    let (old_rest, new_rest) =
        (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(same).count();
    let middle = |lines: &[&'a str]| -> Vec<&'a str> {
        lines.iter().take(lines.len() - tail).copied().collect()
    };
    let (a, b) = (middle(old_rest), middle(new_rest));
    let mut made: Vec<(Kind, &str)> =
        old.iter().take(head).map(|line| (Kind::Same, *line)).collect();
    made.extend(longest_common(&a, &b));
    made.extend(old.iter().skip(old.len() - tail).map(|line| (Kind::Same, *line)));
    made
}

/// By the longest common subsequence.
fn longest_common<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<(Kind, &'a str)> {
    let old = |line: &&'a str| (Kind::Old, *line);
    let new = |line: &&'a str| (Kind::New, *line);
    if a.len().saturating_mul(b.len()) > MAX_PAIRS {
        return a.iter().map(old).chain(b.iter().map(new)).collect();
    }
    let width = b.len() + 1;
    let mut lengths = vec![0_u32; (a.len() + 1) * width];
    let at = |lengths: &[u32], i: usize, j: usize| lengths.get(i * width + j).copied().unwrap_or(0);
    for (i, left) in a.iter().enumerate().rev() {
        for (j, right) in b.iter().enumerate().rev() {
            let best = if left == right {
                at(&lengths, i + 1, j + 1) + 1
            } else {
                at(&lengths, i + 1, j).max(at(&lengths, i, j + 1))
            };
            if let Some(slot) = lengths.get_mut(i * width + j) {
                *slot = best;
            }
        }
    }
    let (mut i, mut j, mut made) = (0, 0, Vec::new());
    while let (Some(left), Some(right)) = (a.get(i), b.get(j)) {
        if left == right {
            made.push((Kind::Same, *left));
            (i, j) = (i + 1, j + 1);
        } else if at(&lengths, i + 1, j) >= at(&lengths, i, j + 1) {
            made.push(old(left));
            i += 1;
        } else {
            made.push(new(right));
            j += 1;
        }
    }
    made.extend(a.iter().skip(i).map(old));
    made.extend(b.iter().skip(j).map(new));
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_their_surroundings() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\n2\n3\n4\n5\nsix\n7\n8\n9\n";
        let shown = unified("f", old, new);
        assert_eq!(shown, "--- f\n+++ f\n@@\n 3\n 4\n 5\n-6\n+six\n 7\n 8\n 9\n");
        assert_eq!(unified("f", old, old), "");
        assert_eq!(unified("f", "", "a\n"), "--- f\n+++ f\n+a\n");
    }
}
