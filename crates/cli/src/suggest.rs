//! The known name that was probably meant by an unknown one.

/// Names that are less alike are not suggested.
const ALIKE: f64 = 0.8;

/// The known name that ends with the wanted word (`server-memory` for `memory`, `files__read` for
/// `read`), or the one most like it.
pub(crate) fn nearest<'n>(
    wanted: &str,
    known: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let wanted = wanted.to_lowercase();
    let scored = known.into_iter().map(|name| {
        let lower = name.to_lowercase();
        let before = lower.strip_suffix(&wanted);
        let is_last_word = before.is_some_and(|it| it.ends_with(['_', '-', '/', '.']));
        (if is_last_word { 1.0 } else { strsim::jaro_winkler(&wanted, &lower) }, name)
    });
    let alike = scored.filter(|(score, _)| *score > ALIKE);
    alike.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// The end of a message about an unknown name; empty if no name is near.
pub(crate) fn did_you_mean<'n>(wanted: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(wanted, known).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_is_found() {
        let known = ["server-memory", "server-fetch", "files__read_file", "rate_limited"];
        for (wanted, expected) in [
            ("memory", Some("server-memory")),
            ("Memory", Some("server-memory")),
            ("server-fetsh", Some("server-fetch")),
            ("read_file", Some("files__read_file")),
            ("RATE_LIMITD", Some("rate_limited")),
            ("emory", None),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(nearest(wanted, known), expected, "{wanted}");
        }
        assert_eq!(did_you_mean("memory", known), "; did you mean `server-memory`?");
        assert_eq!(did_you_mean("zebra", known), "");
    }
}
