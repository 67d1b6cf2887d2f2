//! Reads the members of a large message without looking into its large objects and arrays.

use super::members::Members;
use crate::walk::{Walk, is_sound};

#[cfg(test)]
mod tests;

/// The members of the object that `json` is. `None` if it does not come out even: then
/// [`Members::read`] is asked, which also says what is wrong.
pub(super) fn skim(json: &str) -> Option<Members<'_>> {
    let mut members = Members::default();
    let mut walk = Walk::over(json)?;
    while let Some(key) = walk.key()? {
        let value = match walk.enter() {
            Some(inner) if key == "\"result\"" => result(&mut walk, inner, &mut members)?,
            _ => walk.value()?,
        };
        // What is small is read properly: the id is among it.
        if !is_sound(key, json) || !is_sound(value, json) {
            return None;
        }
        members.take(key, value);
    }
    members.find_duplicate();
    walk.behind().trim_matches([' ', '\t', '\r', '\n']).is_empty().then_some(members)
}

/// The value of `result`, which is walked over member by member, so that nobody needs to go over
/// it again only to see whether it says `isError`.
fn result<'a>(
    walk: &mut Walk<'a>,
    mut inner: Walk<'a>,
    members: &mut Members<'a>,
) -> Option<&'a str> {
    let mut says = None;
    let mut twice = false;
    while let Some(key) = inner.key()? {
        let value = inner.value()?;
        if key == "\"isError\"" {
            twice |= says.replace(value).is_some();
        }
    }
    members.is_error = Some(says == Some("true") && !twice);
    walk.leave(&inner)
}
