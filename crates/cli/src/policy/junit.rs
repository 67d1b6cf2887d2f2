//! Results of `policy test` as JUnit XML, the form every CI system reads.

use super::test::Run;

/// The report of several files. Each error of a document that is not valid is a test case in error.
pub(super) fn report(runs: &[Run]) -> String {
    let suites: Vec<Suite> = runs.iter().map(suite).collect();
    let sum = |count: fn(&Suite) -> usize| suites.iter().map(count).sum::<usize>();
    let (tests, failures, errors) =
        (sum(|it| it.tests), sum(|it| it.failures), sum(|it| it.errors));
    let parts: Vec<&str> = suites.iter().map(|it| it.text.as_str()).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n\
         {}</testsuites>\n",
        parts.concat()
    )
}

/// The results of one file.
struct Suite {
    tests: usize,
    failures: usize,
    errors: usize,
    text: String,
}

fn suite(run: &Run) -> Suite {
    let suite = attribute(run.source.shown());
    let case = |name: &str, line: usize, inside: Option<String>| {
        let name = attribute(name);
        let head = format!(
            "<testcase classname=\"{suite}\" name=\"{name}\" file=\"{suite}\" line=\"{line}\""
        );
        match inside {
            None => format!("    {head}/>\n"),
            Some(inside) => format!("    {head}>\n      {inside}\n    </testcase>\n"),
        }
    };
    let results = run.report.iter().flat_map(|report| &report.results);
    let mut failures = 0;
    let mut cases: Vec<String> = results
        .map(|result| {
            let failure = result.failure.as_deref().map(|why| {
                failures += 1;
                format!("<failure type=\"expectation\" message=\"{}\"/>", attribute(why))
            });
            case(&result.name, result.line, failure)
        })
        .collect();
    let mut errors = 0;
    if run.report.is_none() {
        cases.extend(run.errors().map(|problem| {
            errors += 1;
            let message = attribute(&format!("{}; {}", problem.message, problem.hint));
            let code = problem.code.as_str();
            let error = format!("<error type=\"{code}\" message=\"{message}\"/>");
            case(code, problem.line, Some(error))
        }));
    }
    let tests = cases.len();
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"");
    let unreached = run.report.iter().flat_map(|report| &report.unreached);
    let unreached: Vec<String> =
        unreached.map(|rule| format!("no test reached {rule}{}\n", run.place(rule))).collect();
    if !unreached.is_empty() {
        let text = content(&unreached.concat());
        cases.push(format!("    <system-out>{text}</system-out>\n"));
    }
    let cases = cases.concat();
    let text =
        format!("  <testsuite name=\"{suite}\" {counts} skipped=\"0\">\n{cases}  </testsuite>\n");
    Suite { tests, failures, errors, text }
}

/// Text inside an attribute: line breaks would be read as blanks.
fn attribute(text: &str) -> String {
    content(text).replace('"', "&quot;").replace('\n', "&#10;").replace('\t', "&#9;")
}

/// Text of an element; characters that XML 1.0 cannot carry are replaced.
fn content(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\n' | '\t' => escaped.push(c),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{attribute, content};

    #[test]
    fn text_stays_text() {
        assert_eq!(content("a<b>&\"c\"\u{1b}\n"), "a&lt;b&gt;&amp;\"c\"\u{fffd}\n");
        assert_eq!(attribute("a\"b\n\tc\r"), "a&quot;b&#10;&#9;c\u{fffd}");
    }
}
