//! Cookies: the sign-in, and the language and theme that a person chose.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::sign_ins::LIFETIME;

/// The cookie of the sign-in without TLS, and with it. Browsers accept `__Host-` only over TLS, for
/// one host and all paths.
const PLAIN: &str = "toolgate";
const SECURE: &str = "__Host-toolgate";
/// What a person chose; no secret.
const LANGUAGE: &str = "toolgate_lang";
const THEME: &str = "toolgate_theme";
/// A year.
const CHOICE_AGE: u32 = 31_536_000;

fn name(https: bool) -> &'static str {
    if https { SECURE } else { PLAIN }
}

/// The value of the sign-in cookie.
pub(crate) fn sign_in(headers: &HeaderMap, https: bool) -> Option<&str> {
    find(headers, name(https))
}

/// The language that was chosen.
pub(crate) fn language(headers: &HeaderMap) -> Option<&str> {
    find(headers, LANGUAGE)
}

/// The theme that was chosen.
pub(crate) fn theme(headers: &HeaderMap) -> Option<&str> {
    find(headers, THEME)
}

/// Sets the sign-in cookie.
pub(crate) fn set_sign_in(value: &str, https: bool) -> Option<HeaderValue> {
    cookie(name(https), value, LIFETIME.as_secs(), https, true)
}

/// Removes the sign-in cookie.
pub(crate) fn remove_sign_in(https: bool) -> Option<HeaderValue> {
    cookie(name(https), "", 0, https, true)
}

/// Remembers a language.
pub(crate) fn set_language(value: &str, https: bool) -> Option<HeaderValue> {
    cookie(LANGUAGE, value, i64::from(CHOICE_AGE), https, false)
}

/// Remembers a theme.
pub(crate) fn set_theme(value: &str, https: bool) -> Option<HeaderValue> {
    cookie(THEME, value, i64::from(CHOICE_AGE), https, false)
}

fn cookie(name: &str, value: &str, age: i64, https: bool, is_secret: bool) -> Option<HeaderValue> {
    let secure = if https { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}");
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(is_secret);
    Some(value)
}

/// The only value of a cookie: with two, another page of the host may have set one.
fn find<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(found, _)| found.trim() == name).map(|(_, value)| value.trim());
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(cookies: &[&'static str]) -> HeaderMap {
        let values = cookies.iter().map(|text| (header::COOKIE, HeaderValue::from_static(text)));
        values.collect()
    }

    #[test]
    fn the_only_value_of_a_cookie_is_found() {
        let cases: &[(&[&'static str], Option<&str>)] = &[
            (&["toolgate=a"], Some("a")),
            (&["x=1; toolgate=a; y=2"], Some("a")),
            (&["x=1", "toolgate=a"], Some("a")),
            (&["toolgate=a; toolgate=b"], None),
            (&["toolgate=a", "toolgate=b"], None),
            (&["__Host-toolgate=a"], None),
            (&["toolgate="], None),
            (&[], None),
        ];
        for (cookies, expected) in cases {
            assert_eq!(sign_in(&headers(cookies), false), *expected, "{cookies:?}");
        }
        assert_eq!(sign_in(&headers(&["__Host-toolgate=a; toolgate=b"]), true), Some("a"));
    }

    #[test]
    fn the_sign_in_cookie_is_strict_and_bound_to_the_host_under_tls() {
        let plain = set_sign_in("v", false).unwrap();
        let expected = "toolgate=v; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict";
        assert_eq!(plain.to_str().unwrap(), expected);
        let secure = set_sign_in("v", true).unwrap();
        assert_eq!(secure.to_str().unwrap(), format!("__Host-{expected}; Secure"));
        assert!(remove_sign_in(true).unwrap().to_str().unwrap().contains("Max-Age=0"));
    }
}
