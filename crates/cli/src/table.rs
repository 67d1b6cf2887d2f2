//! Tables for people: aligned columns that fit the terminal.
//!
//! Invariant: output that is not a terminal is never cut, so that scripts and files get everything.

use std::io::{IsTerminal as _, stdout};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The space between two columns.
const GAP: usize = 2;
/// A column that may be cut keeps at least this width.
const LEAST: usize = 6;

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) head: &'static str,
    pub(crate) cut: Cut,
}

/// What may be left out of a cell if the terminal is too narrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Nothing: an id or a number is useless in part.
    Never,
    /// Its end.
    End,
    /// Its beginning: the end of a rule is the specific part.
    Start,
}

/// The widths of all columns.
pub(crate) struct Layout {
    columns: Vec<(Column, usize)>,
    /// Whether cells are cut to the widths.
    cuts: bool,
}

/// The width of the terminal; `None` if the output is not a terminal. The variable COLUMNS
/// overrides it.
pub(crate) fn terminal_width() -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let is_wide_enough = |width: &usize| *width >= 20;
    set.filter(is_wide_enough).or_else(|| {
        let shown = stdout().is_terminal().then(toolgate_os::terminal::width);
        shown.flatten().filter(is_wide_enough)
    })
}

/// The whole table.
pub(crate) fn render(columns: &[Column], rows: &[Vec<String>], width: Option<usize>) -> String {
    let layout = Layout::new(columns, rows, width);
    std::iter::once(layout.head()).chain(rows.iter().map(|row| layout.line(row))).collect()
}

// === impl Layout ===

impl Layout {
    /// Fits columns to these rows and to the width, if there is one.
    pub(crate) fn new(columns: &[Column], rows: &[Vec<String>], width: Option<usize>) -> Self {
        let widest = |place: usize, head: &str| {
            let cells = rows.iter().filter_map(|row| row.get(place));
            cells.map(|cell| cell.width()).fold(head.width(), usize::max)
        };
        let columns = columns.iter().enumerate();
        let mut columns: Vec<(Column, usize)> =
            columns.map(|(place, column)| (*column, widest(place, column.head))).collect();
        if let Some(width) = width {
            shrink(&mut columns, width);
        }
        Self { columns, cuts: width.is_some() }
    }

    pub(crate) fn head(&self) -> String {
        let heads: Vec<String> =
            self.columns.iter().map(|(column, _)| column.head.to_owned()).collect();
        self.line(&heads)
    }

    /// One line with its end.
    pub(crate) fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for ((column, width), cell) in self.columns.iter().zip(cells) {
            let cell = if self.cuts { cut(cell, *width, column.cut) } else { cell.clone() };
            let padding = (width + GAP).saturating_sub(cell.width());
            line.push_str(&cell);
            line.extend(std::iter::repeat_n(' ', padding.max(1)));
        }
        format!("{}\n", line.trim_end())
    }
}

/// Takes width from the widest column that may be cut until the table fits.
fn shrink(columns: &mut [(Column, usize)], width: usize) {
    let gaps = columns.len().saturating_sub(1) * GAP;
    let total = |columns: &[(Column, usize)]| gaps + columns.iter().map(|(_, w)| w).sum::<usize>();
    while total(columns) > width {
        let can_shrink = |(column, width): &&mut (Column, usize)| {
            column.cut != Cut::Never && *width > LEAST.max(column.head.width())
        };
        let widest = columns.iter_mut().filter(can_shrink).max_by_key(|(_, width)| *width);
        match widest {
            Some((_, width)) => *width -= 1,
            None => return,
        }
    }
}

/// The text within a width, with `…` for what is left out.
pub(crate) fn cut(text: &str, width: usize, how: Cut) -> String {
    if how == Cut::Never || text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let fits = |kept: &mut usize, c: char| {
        *kept += c.width().unwrap_or(0);
        (*kept <= room).then_some(c)
    };
    if how == Cut::End || !text.starts_with('/') {
        let kept: String = text.chars().scan(0, fits).collect();
        return format!("{kept}…");
    }
    let kept: Vec<char> = text.chars().rev().scan(0, fits).collect();
    let kept: String = kept.into_iter().rev().collect();
    format!("…{kept}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column { head: "ID", cut: Cut::Never },
        Column { head: "BASE", cut: Cut::End },
        Column { head: "RULE", cut: Cut::Start },
    ];

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        vec![
            row(["g-0123456789", "Бухгалтерия предприятия", "/tools/close/limits/close_rate"]),
            row(["g-1", "商店", "-"]),
        ]
    }

    #[test]
    fn a_pointer_keeps_its_end_and_a_sentence_its_beginning() {
        assert_eq!(cut("/tools/close/limits/rate", 12, Cut::Start), "…limits/rate");
        assert_eq!(cut("revoked the grant `a`", 12, Cut::Start), "revoked the…");
    }

    #[test]
    fn a_wide_terminal_and_a_pipe_show_everything() {
        let expected = "ID            BASE                     RULE\n\
                        g-0123456789  Бухгалтерия предприятия  /tools/close/limits/close_rate\n\
                        g-1           商店                     -\n";
        for width in [None, Some(200)] {
            assert_eq!(render(COLUMNS, &rows(), width), expected);
        }
    }

    #[test]
    fn a_narrow_terminal_cuts_what_may_be_cut() {
        let expected = "ID            BASE          RULE\n\
                        g-0123456789  Бухгалтерия…  …/close_rate\n\
                        g-1           商店          -\n";
        assert_eq!(render(COLUMNS, &rows(), Some(40)), expected);
        for width in 34..100 {
            let text = render(COLUMNS, &rows(), Some(width));
            assert!(text.lines().all(|line| line.width() <= width), "{width}:\n{text}");
            assert!(text.contains("g-0123456789"), "{text}");
        }
    }
}
