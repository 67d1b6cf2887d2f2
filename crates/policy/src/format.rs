//! Formats a document: one layout, every comment kept, nothing reordered, meaning untouched.
//!
//! Two spaces a level; flow (`{}`, `[]`) stays flow where it fits the line; one blank line at most.
//! JSON stays JSON. Formatting twice gives the same text.
//!
//! Invariant: what comes out reads as what went in, or the text is returned as it was.

mod read;
mod write;

use crate::{
    Problem,
    problem::Findings,
    syntax::{self, Node},
};

/// Widest line that flow may fill.
const WIDTH: usize = 100;

/// The document, formatted; problems only if it cannot be read at all.
pub fn format(source: &str) -> Result<String, Vec<Problem>> {
    let mut findings = Findings::new(source);
    let Some(root) = syntax::parse(source, &mut findings) else { return Err(findings.finish()) };
    if findings.has_errors() {
        return Err(findings.finish());
    }
    // One pass settles all but the oddest layouts; what does not settle is left alone.
    let mut text = pass(source, &root);
    for _ in 0..PASSES {
        let again = pass(&text, &root);
        if again == text {
            return Ok(text);
        }
        text = again;
    }
    Ok(source.to_owned())
}

const PASSES: usize = 3;

fn pass(source: &str, root: &Node) -> String {
    let formatted = if serde_json::from_str::<serde::de::IgnoredAny>(source).is_ok() {
        write::json(root)
    } else {
        read::items(source).map_or_else(|| source.to_owned(), |document| write::yaml(&document))
    };
    if same(&formatted, root, source) { formatted } else { source.to_owned() }
}

/// Same values, and as many comments.
fn same(formatted: &str, root: &Node, source: &str) -> bool {
    let mut findings = Findings::new(formatted);
    let again = syntax::parse(formatted, &mut findings);
    again.is_some_and(|again| again.to_json() == root.to_json())
        && read::comments(formatted) == read::comments(source)
}

#[cfg(test)]
mod tests;
