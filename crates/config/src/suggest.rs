//! "Did you mean": the known word nearest to a misspelt one.

/// Longer words are not misspelt keys, and comparing them would be expensive.
const LONGEST: usize = 64;

/// The nearest of `known` to `word`, if it is near enough.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let folded = fold(word);
    let limit = (folded.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&folded, &fold(candidate)), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The hint for `word`: the nearest known one, or all of them if they are few.
pub(crate) fn hint(word: &str, known: &[&str]) -> Option<String> {
    if let Some(near) = nearest(word, known.iter().copied()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let listed = known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>();
    (!listed.is_empty() && listed.len() <= 16).then(|| format!("known here: {}", listed.join(", ")))
}

/// `startTimeout`, `start-timeout` and `start_timeout` are one word.
fn fold(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_far_ones_are_not() {
        let known = ["command", "args", "env", "url", "headers", "start_timeout", "timeout"];
        for (word, expected) in [
            ("comand", Some("command")),
            ("commnad", Some("command")),
            ("startTimeout", Some("start_timeout")),
            ("start-timeout", Some("start_timeout")),
            ("Timeout", Some("timeout")),
            ("header", Some("headers")),
            ("evn", Some("env")),
            ("arg", Some("args")),
            ("retries", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }
}
