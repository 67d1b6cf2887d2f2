//! Answers to unknown names, with the name that was probably meant.

use crate::fault::Fault;

/// Names that are less alike are not suggested.
const ALIKE: f64 = 0.8;

/// 404 for a name that does not exist.
pub(crate) fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Fault {
    Fault::not_found(message(what, name, known))
}

/// The text of it.
pub(crate) fn message<'a>(
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    match nearest(name, known) {
        Some(near) => format!("there is no {what} `{name}`; did you mean `{near}`?"),
        None => format!("there is no {what} `{name}`"),
    }
}

fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    // Two letters that changed places are one slip, also in a short name.
    let is_slip = |it: &str| strsim::osa_distance(&lower, it) == 1;
    let scored = known.into_iter().map(|it| {
        let known = it.to_lowercase();
        let score = strsim::jaro_winkler(&lower, &known);
        (if is_slip(&known) { score.max(1.0) } else { score }, it)
    });
    let alike = scored.filter(|(score, _)| *score > ALIKE);
    alike.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, it)| it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested() {
        let known = ["laptop", "ci", "Сервер"];
        for (name, expected) in [
            ("laptp", "there is no grant `laptp`; did you mean `laptop`?"),
            ("LAPTOP", "there is no grant `LAPTOP`; did you mean `laptop`?"),
            ("сервр", "there is no grant `сервр`; did you mean `Сервер`?"),
            ("ic", "there is no grant `ic`; did you mean `ci`?"),
            ("zebra", "there is no grant `zebra`"),
        ] {
            assert_eq!(message("grant", name, known), expected);
        }
    }
}
