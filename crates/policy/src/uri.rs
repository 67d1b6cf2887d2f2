//! What a server may take a URI for: one resource has many spellings.
//!
//! Servers decode percent signs once or twice or not at all, resolve dot segments, skip slashes,
//! ignore the host of `file:` and the case of schemes. So a rule on URIs looks at all of these
//! readings: what hides or denies one of them does so for the URI, and what allows must match every
//! reading that is the same resource by the standards.
//!
//! Invariant: linear in the length of the URI; the number of readings is fixed.

use toolgate_json::compatible;
use url::Url;

/// The readings of one URI.
pub(crate) struct Readings {
    /// As it came, and normalised by RFC 3986 and by WHATWG.
    same: Vec<String>,
    /// What careless readers make of it.
    careless: Vec<String>,
}

impl Readings {
    pub(crate) fn of(uri: &str) -> Self {
        let mut same = vec![uri.to_owned()];
        let whatwg = Url::parse(uri).map(String::from).ok();
        for uri in [Some(uri), whatwg.as_deref()].into_iter().flatten() {
            add(&mut same, literal_uri(uri));
            add(&mut same, normal_uri(uri));
        }
        let mut careless: Vec<String> = Vec::new();
        let plain: Vec<String> = same.iter().map(|uri| plain_uri(uri)).collect();
        for reading in same.iter().chain(&plain).flat_map(|uri| careless_readings(uri)) {
            if !same.contains(&reading) {
                add(&mut careless, reading);
            }
        }
        Self { same, careless }
    }

    /// Whether one reading of them all fits.
    pub(crate) fn any(&self, fits: impl FnMut(&str) -> bool) -> bool {
        self.same.iter().chain(&self.careless).map(String::as_str).any(fits)
    }

    /// Whether every reading that the standards know fits.
    pub(crate) fn all(&self, fits: impl FnMut(&str) -> bool) -> bool {
        self.same.iter().map(String::as_str).all(fits)
    }
}

fn add(readings: &mut Vec<String>, reading: String) {
    if !readings.contains(&reading) {
        readings.push(reading);
    }
}

/// The form that all spellings of one URI have in common: white space and control characters away,
/// percent signs decoded to the end, `/` for `\`, scheme and authority in lower case, no dot
/// segments, no empty segments, and `file:///` for every local file. The form of a form is itself.
pub fn normal_uri(uri: &str) -> String {
    normalised(trimmed(&decode(uri, is_skipped)))
}

/// The same for those who take an escaped blank for a character of the name: `%20` at the end, `%09`
/// anywhere.
pub(crate) fn literal_uri(uri: &str) -> String {
    normalised(&decoded(&trimmed(uri).replace(['\t', '\n', '\r'], "")))
}

fn normalised(text: &str) -> String {
    let text = text.replace('\\', "/");
    let Some((scheme, rest)) = scheme(&text) else {
        return text;
    };
    let scheme = scheme.to_ascii_lowercase();
    if let Some(local) = local_path(&scheme, rest) {
        return format!("file:///{}", segments(local));
    }
    match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
            let authority = authority.to_lowercase();
            match path.strip_prefix('/') {
                Some(path) => format!("{scheme}://{authority}/{}", segments(path)),
                None => format!("{scheme}://{authority}{path}"),
            }
        }
        None => match rest.strip_prefix('/') {
            Some(path) => format!("{scheme}:/{}", segments(path)),
            None => format!("{scheme}:{rest}"),
        },
    }
}

/// What follows the host of a file on this machine: `file:x`, `file:/x`, `file:///x`,
/// `file://localhost/x`.
fn local_path<'t>(scheme: &str, rest: &'t str) -> Option<&'t str> {
    if scheme != "file" {
        return None;
    }
    let Some(after) = rest.strip_prefix("//") else { return Some(rest) };
    let end = after.find('/').unwrap_or(after.len());
    let (host, path) = after.split_at_checked(end)?;
    let local = ["", "localhost", "localhost.", "127.0.0.1", "[::1]"];
    local.iter().any(|name| host.eq_ignore_ascii_case(name)).then_some(path)
}

/// The scheme and what follows its colon.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let mut bytes = scheme.bytes();
    let fits = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    fits.then_some((scheme, rest))
}

/// Without the control characters and spaces that WHATWG ignores at the ends.
fn trimmed(uri: &str) -> &str {
    uri.trim_matches(|c: char| c <= ' ' || c.is_whitespace() || c == '\u{feff}')
}

/// What WHATWG ignores anywhere: line breaks and tabs.
fn is_skipped(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r')
}

/// Percent signs decoded until there is nothing left to decode (`%2565` is `%65` is `e`), also where
/// a byte stands in the two bytes of a form that is too long.
pub(crate) fn decoded(text: &str) -> String {
    decode(text, |_| false)
}

/// The same without bytes that are `skipped`, also where they were escaped.
fn decode(text: &str, skipped: impl Fn(u8) -> bool) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        out.push(byte);
        // What was decoded may be the end of another escape.
        while let [.., b'%', high, low] = out.as_slice()
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            out.truncate(out.len() - 3);
            out.push(high << 4 | low);
            if let [.., high @ 0xc0..=0xc1, low @ 0x80..=0xbf] = out.as_slice() {
                let byte = (high & 1) << 6 | (low & 0x3f);
                out.truncate(out.len() - 2);
                out.push(byte);
            }
        }
        if out.last().is_some_and(|byte| skipped(*byte)) {
            out.pop();
        }
    }
    String::from_utf8(out)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// A path without its empty and dot segments; query and fragment stay.
fn segments(path: &str) -> String {
    let end = path.find(['?', '#']).unwrap_or(path.len());
    let (path, behind) = path.split_at_checked(end).unwrap_or((path, ""));
    let mut kept: Vec<&str> = Vec::new();
    let mut open = path.is_empty();
    for segment in path.split('/') {
        open = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            _ => kept.push(segment),
        }
    }
    let slash = if open && !kept.is_empty() { "/" } else { "" };
    format!("{}{slash}{behind}", kept.join("/"))
}

/// Without compatibility forms (`ｅ`, `／`) and characters that show nothing, for readers that
/// normalise text.
fn plain_uri(uri: &str) -> String {
    normal_uri(&compatible(&normal_uri(uri)))
}

/// What careless readers make of a URI.
fn careless_readings(uri: &str) -> Vec<String> {
    let text = normal_uri(uri);
    let mut readings = Vec::new();
    // Some cut a text at its first NUL.
    let whole = text.split('\0').next().unwrap_or_default();
    readings.push(normal_uri(whole));
    // A fragment is never sent to the server.
    let bare = whole.split('#').next().unwrap_or_default();
    readings.push(normal_uri(bare));
    let drive = |scheme: &str| scheme.len() == 1;
    match scheme(bare) {
        Some((scheme, rest)) if !drive(scheme) => {
            let rest = rest.trim_start_matches('/');
            let is_file = scheme == "file";
            let authority = if is_file { "file:///" } else { &format!("{scheme}://") };
            readings.push(normal_uri(&format!("{authority}{rest}")));
            if let Some((host, path)) = rest.split_once('/') {
                let host = host.rsplit('@').next().unwrap_or_default();
                let host = host.split(':').next().unwrap_or_default().trim_end_matches('.');
                readings.push(normal_uri(&format!("{scheme}://{host}/{path}")));
                if is_file {
                    // Most take the path and never look at the host.
                    readings.push(normal_uri(&format!("file:///{path}")));
                }
            }
        }
        // A path that is not a URI, or begins with a drive.
        _ => readings.push(normal_uri(&format!("file:///{}", bare.trim_start_matches('/')))),
    }
    for at in 0..readings.len() {
        let Some(file) = readings.get(at).and_then(|uri| uri.strip_prefix("file:///")) else {
            continue;
        };
        let path = file.split('?').next().unwrap_or_default();
        // Windows skips dots and spaces at the end of a name.
        let names: Vec<&str> =
            path.split('/').map(|name| name.trim_end_matches(['.', ' '])).collect();
        let (path, trimmed) = (format!("file:///{path}"), format!("file:///{}", names.join("/")));
        readings.extend([path, trimmed]);
    }
    readings
}

#[cfg(test)]
mod tests {
    use super::{Readings, literal_uri, normal_uri};

    #[test]
    fn one_file_has_one_form() {
        for uri in [
            "file:///etc/passwd",
            "FILE:///etc/passwd",
            "file:/etc/passwd",
            "file:etc/passwd",
            "file://localhost/etc/passwd",
            "file://LOCALHOST/etc/passwd",
            "file:////etc/passwd",
            "file://///etc///passwd",
            "file:///%65tc/passwd",
            "file:///%65%74%63%2Fpasswd",
            "file:///%2565tc/passwd",
            "file:///%25252565tc/passwd",
            "file:///etc/./passwd",
            "file:///x/../etc/passwd",
            "file:///x/%2e%2e/etc/passwd",
            "file:///x/%2e./etc/passwd",
            "file:///../../etc/passwd",
            "file:///x/..%2fetc/passwd",
            "file:///x/..%5cetc/passwd",
            "file:///x\\..\\etc\\passwd",
            "file:\\\\\\etc\\passwd",
            " file:///etc/passwd ",
            "file:///et\tc/pas\nswd",
            "fi\nle:///etc/passwd",
            "file:///x/%c0%ae%c0%ae/etc/passwd",
            "file%3A///etc/passwd",
        ] {
            assert_eq!(normal_uri(uri), "file:///etc/passwd", "{uri:?}");
        }
        for (uri, expected) in [
            ("db://Main/Secret", "db://main/Secret"),
            ("db://main//a/../secret/", "db://main/secret/"),
            ("urn:X:y", "urn:X:y"),
            ("HTTP://Example.com/a?b=%2F..%2F", "http://example.com/a?b=/../"),
            ("file://server/share/x", "file://server/share/x"),
            ("file:///a/b/..", "file:///a/"),
            ("file:///", "file:///"),
            ("%zz%4", "%zz%4"),
            ("", ""),
        ] {
            assert_eq!(normal_uri(uri), expected, "{uri:?}");
            assert_eq!(normal_uri(expected), expected, "{uri:?}");
            assert_eq!(literal_uri(uri), expected, "{uri:?}");
        }
    }

    #[test]
    fn blanks_that_were_escaped_do_not_keep_two_spellings_apart() {
        for uri in [
            "file:///etc/passwd%20",
            "%20file:///etc/passwd",
            "file:///et%09c/pas%0Aswd",
            "file:///%%0965tc/passwd",
            "file:///%%%090965tc/passwd",
        ] {
            assert_eq!(normal_uri(uri), "file:///etc/passwd", "{uri:?}");
        }
        // Who takes them for characters of a name has another resource, and rules see it too.
        for (uri, literal) in [("file:///a%20", "file:///a "), ("file:///a%09b", "file:///a\tb")] {
            assert_eq!(literal_uri(uri), literal);
            assert!(Readings::of(uri).any(|one| one == literal));
            assert!(!Readings::of(uri).all(|one| one == normal_uri(uri)));
        }
    }

    #[test]
    fn careless_readers_are_thought_of() {
        for uri in [
            "file://server/etc/passwd",
            "file://etc/passwd",
            "file:///etc/passwd#x",
            "file:///etc/passwd?x",
            "file:///etc/passwd%00.png",
            "file:///etc./passwd ",
            "file:///etc/passwd.",
            "file://user@localhost:80/etc/passwd",
            "/etc/passwd",
            "//etc/passwd",
            "etc/passwd",
            "\\etc\\passwd",
            "file:///ｅtc/passwd",
            "file:／／／etc／passwd",
            "file:///%EF%BD%85tc/passwd",
            "file:///etc\u{200b}/pass\u{ad}wd",
            "file:///etc\u{0}/passwd",
        ] {
            assert!(Readings::of(uri).any(|one| one == "file:///etc/passwd"), "{uri:?}");
        }
        let http = Readings::of("https:example.com/secret");
        assert!(http.any(|one| one == "https://example.com/secret"));
        let http = Readings::of("https://u:p@EXAMPLE.com.:443/secret");
        assert!(http.any(|one| one == "https://example.com/secret"));
        assert!(Readings::of("https://0x7f.1/secret").any(|one| one == "https://127.0.0.1/secret"));
        assert!(
            Readings::of("C:\\x\\y").any(|one| one == "file:///C:/x/y" || one == "file:///c:/x/y")
        );
    }

    #[test]
    fn what_is_allowed_is_so_in_every_reading() {
        let within = |uri: &str| Readings::of(uri).all(|one| one.starts_with("file:///data/"));
        assert!(within("file:///data/x%20y") && within("file:///data/a/b"));
        for uri in ["file:///data/../etc", "file:///data/%2e%2e/etc", "file:///data/..%2fetc"] {
            assert!(!within(uri), "{uri}");
        }
    }
}
