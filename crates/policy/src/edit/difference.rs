//! Whether an edit changed what it was meant to change, and nothing else.

use super::{item_at, parse};
use crate::syntax::{Member, Node, Value};

/// Whether `after` differs from `before` in the member at `path` alone, which has this value.
pub(super) fn is_only_change(
    before: &Node,
    after: &Node,
    path: &[&str],
    value: Option<&str>,
) -> bool {
    let Some((name, rest)) = path.split_first() else {
        let wanted = value.and_then(|text| parse(&format!("v: {text}")).ok());
        let wanted = wanted.and_then(|root| root.get("v").map(Node::to_json));
        return wanted == Some(after.to_json());
    };
    if let (Value::List(old), Value::List(new)) = (before.value(), after.value()) {
        let (Some(old_item), Some(new_item)) = (item_at(old, name), item_at(new, name)) else {
            return false;
        };
        let others = |items: &[Node], but: &Node| {
            let others = items.iter().filter(|item| item.span.start != but.span.start);
            others.map(Node::to_json).collect::<Vec<_>>()
        };
        return old.len() == new.len()
            && others(old, old_item) == others(new, new_item)
            && is_only_change(old_item, new_item, rest, value);
    }
    let (Value::Map(old), Value::Map(new)) = (before.value(), after.value()) else { return false };
    let others = |members: &[Member]| {
        let others = members.iter().filter(|member| member.key.text != *name);
        others.map(|it| (it.key.text.clone(), it.value.to_json())).collect::<Vec<_>>()
    };
    if others(old) != others(new) {
        return false;
    }
    let of = |members: &[Member]| {
        members.iter().find(|it| it.key.text == *name).map(|it| it.value.clone())
    };
    match (of(old), of(new), value) {
        (_, None, None) => rest.is_empty() || of(old).is_none(),
        (None, Some(new), Some(_)) => {
            let empty = Node::map(Vec::new(), new.span);
            is_only_change(&empty, &new, rest, value)
        }
        (Some(old), Some(new), _) => {
            let is_empty = matches!(old.value(), Value::Null) && !rest.is_empty();
            let old = if is_empty { Node::map(Vec::new(), new.span) } else { old };
            (rest.is_empty() && value.is_some() && is_only_change(&old, &new, rest, value))
                || (!rest.is_empty() && is_only_change(&old, &new, rest, value))
        }
        _ => false,
    }
}
