//! Versions of a policy, and how they differ.

use crate::items::PolicyVersion;
use crate::shown::Moment;

/// A version in the list.
pub(crate) struct VersionLine {
    pub(crate) number: u64,
    pub(crate) created: Option<Moment>,
    pub(crate) is_active: bool,
    /// The lines that differ from the active one, if the page shows them.
    pub(crate) diff: Option<Vec<DiffLine>>,
}

/// A line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiffLine {
    /// `added`, `removed` or `same`.
    pub(crate) class: &'static str,
    pub(crate) text: String,
}

/// How long two documents may be, in lines, to be compared line by line.
const MOST: usize = 2_000;

/// All versions, the newest first; the one named `shown` with its diff to the active document.
pub(crate) fn compare(versions: &[PolicyVersion], active: &str, shown: &str) -> Vec<VersionLine> {
    let newest = versions.iter().map(|version| version.version).max();
    let line = |version: &PolicyVersion| VersionLine {
        number: version.version,
        created: Moment::of(Some(&version.created)),
        is_active: Some(version.version) == newest,
        diff: (version.version.to_string() == shown).then(|| diff(&version.document, active)),
    };
    versions.iter().rev().map(line).collect()
}

/// The lines of both, by their longest common subsequence.
pub(crate) fn diff(old: &str, new: &str) -> Vec<DiffLine> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let line = |class, text: &&str| DiffLine { class, text: (*text).to_owned() };
    if old.len() > MOST || new.len() > MOST {
        let removed = old.iter().map(|text| line("removed", text));
        return removed.chain(new.iter().map(|text| line("added", text))).collect();
    }
    let width = new.len() + 1;
    let mut common = vec![0u32; (old.len() + 1) * width];
    let at = |common: &[u32], i: usize, j: usize| common.get(i * width + j).copied().unwrap_or(0);
    for (i, before) in old.iter().enumerate().rev() {
        for (j, after) in new.iter().enumerate().rev() {
            let value = if before == after {
                at(&common, i + 1, j + 1) + 1
            } else {
                at(&common, i + 1, j).max(at(&common, i, j + 1))
            };
            if let Some(cell) = common.get_mut(i * width + j) {
                *cell = value;
            }
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    loop {
        match (old.get(i), new.get(j)) {
            (Some(before), Some(after)) if before == after => {
                lines.push(line("same", before));
                (i, j) = (i + 1, j + 1);
            }
            (Some(before), None) => {
                lines.push(line("removed", before));
                i += 1;
            }
            (Some(before), Some(_)) if at(&common, i + 1, j) >= at(&common, i, j + 1) => {
                lines.push(line("removed", before));
                i += 1;
            }
            (_, Some(after)) => {
                lines.push(line("added", after));
                j += 1;
            }
            (None, None) => return lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str) -> String {
        let sign = |line: &DiffLine| match line.class {
            "added" => format!("+{}", line.text),
            "removed" => format!("-{}", line.text),
            _ => format!(" {}", line.text),
        };
        diff(old, new).iter().map(sign).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn lines_that_differ_are_marked() {
        assert_eq!(shown("a\nb\nc", "a\nx\nc"), " a|-b|+x| c");
        assert_eq!(shown("a", "a\nb"), " a|+b");
        assert_eq!(shown("a\nb", "b"), "-a| b");
        assert_eq!(shown("", ""), "");
    }
}
