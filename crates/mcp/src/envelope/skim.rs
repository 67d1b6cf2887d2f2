//! Reads the members of a large message without parsing its large objects and arrays.

use toolgate_json::peek::is_sound;
use toolgate_json::walk::Walk;

use super::members::Members;

#[cfg(test)]
mod tests;

/// The members of the object `json`. `None` if it is malformed; [`Members::read`] then finds the
/// error.
pub(super) fn skim(json: &str) -> Option<Members<'_>> {
    let mut members = Members::default();
    let mut walk = Walk::object(json).ok()?;
    while let Some(key) = walk.key().ok()? {
        let key = key.text;
        let value = match walk.enter() {
            Some(inner) if key == "\"result\"" => result(&mut walk, inner, &mut members)?,
            _ => walk.value().ok()?.text,
        };
        // Small values are validated; the id is one of them.
        if !is_sound(key, json) || !is_sound(value, json) {
            return None;
        }
        members.take(key, value);
    }
    members.find_duplicate();
    walk.rest().trim_matches([' ', '\t', '\r', '\n']).is_empty().then_some(members)
}

/// The value of `result`, walked through member by member, so that `isError` is found without a
/// second pass.
fn result<'a>(
    walk: &mut Walk<'a>,
    mut inner: Walk<'a>,
    members: &mut Members<'a>,
) -> Option<&'a str> {
    let mut says = None;
    let mut twice = false;
    while let Some(key) = inner.key().ok()? {
        let value = inner.value().ok()?.text;
        if key.text == "\"isError\"" {
            twice |= says.replace(value).is_some();
        }
    }
    members.is_error = Some(says == Some("true") && !twice);
    walk.leave(&inner).ok()
}
