//! Sign-in, sign-out, language and theme.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use data_encoding::HEXLOWER;
use toolgate_audit::Hash;
use toolgate_gateway::{AuthFailureReason, Listener, Peer};

use crate::arrival::Arrival;
use crate::assets;
use crate::cookies;
use crate::problem::Problem;
use crate::shell::Shell;
use crate::visit::{Outcome, Visit, own_path, see_other, with_status};

#[derive(Template)]
#[template(path = "login.html")]
struct Login {
    s: Shell,
    assets: &'static str,
    /// Where to continue.
    next: String,
    /// The code of a sign-in link, and whom it signs in.
    code: String,
    link_person: String,
    error: String,
}

/// The sign-in page; with `?code=`, the page that confirms a link.
pub(crate) async fn show(arrival: Arrival) -> Outcome {
    let code = arrival.query.text("code").to_owned();
    let is_good = code.is_empty() || arrival.console.admin.person_of_link(&code).is_some();
    let error =
        if is_good { String::new() } else { arrival.language.text("login-link-ended", &[]) };
    let status = if error.is_empty() { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
    form(&arrival, status, error)
}

fn form(arrival: &Arrival, status: StatusCode, error: String) -> Outcome {
    let s = Shell::outside(arrival.language, arrival.theme, "/login".to_owned());
    let given = arrival.query.some("next").or(arrival.form.some("next"));
    let next = given.and_then(own_path).unwrap_or("/").to_owned();
    let code = arrival.query.text("code").to_owned();
    let person = arrival.console.admin.person_of_link(&code);
    let link_person = person.map(|person| person.name.to_string()).unwrap_or_default();
    let page = Login { s, assets: &assets::VERSION, next, code, link_person, error };
    with_status(status, &page)
}

/// Signs in with a token, or with the code of a link.
pub(crate) async fn sign_in(arrival: Arrival) -> Outcome {
    let (admin, now) = (&arrival.console.admin, arrival.console.admin.now());
    let waiting = arrival.console.throttle.lock().wait(arrival.address, now);
    if let Some(seconds) = waiting {
        let error = arrival.language.text("login-wait", &[("n", seconds.into())]);
        let mut response = form(&arrival, StatusCode::TOO_MANY_REQUESTS, error)?;
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        return Ok(response);
    }
    let code = arrival.form.text("code");
    let found = if code.is_empty() {
        admin.sign_in(arrival.form.text("token"))
    } else {
        admin.sign_in_by_link(code)
    };
    let Some((token, _)) = found else {
        arrival.console.throttle.lock().wrong(arrival.address, now);
        admin.auth_failures().refused(
            Listener::Admin,
            AuthFailureReason::BadToken,
            arrival.address.map(Peer),
        );
        let key = if code.is_empty() { "login-wrong" } else { "login-link-ended" };
        return form(&arrival, StatusCode::UNAUTHORIZED, arrival.language.text(key, &[]));
    };
    let next = own_path(arrival.form.text("next")).unwrap_or("/").to_owned();
    let cookie = add_sign_in(&arrival, token)?;
    let mut response = see_other(&next);
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(response)
}

/// A new sign-in, and its cookie.
fn add_sign_in(arrival: &Arrival, token: Hash) -> Result<HeaderValue, Problem> {
    let none = || Problem::Internal("the system provides no random bytes");
    let admin = &arrival.console.admin;
    let secret = HEXLOWER.encode(&admin.random_bits().ok_or_else(none)?);
    let csrf = HEXLOWER.encode(&admin.random_bits().ok_or_else(none)?);
    let key = Hash::of(secret.as_bytes());
    let https = arrival.console.is_https(&arrival.headers);
    // The browser forgets the cookie that it has, so its sign-in ends too.
    if let Some(old) = cookies::sign_in(&arrival.headers, https) {
        arrival.console.sign_ins.lock().end(&Hash::of(old.as_bytes()));
    }
    arrival.console.sign_ins.lock().add(key, token, csrf, admin.now());
    cookies::set_sign_in(&secret, https).ok_or_else(none)
}

/// Signs out.
pub(crate) async fn sign_out(visit: Visit) -> Outcome {
    visit.console.sign_ins.lock().end(&visit.cookie);
    let mut response = see_other("/login");
    add_cookie(&mut response, cookies::remove_sign_in(visit.console.is_https(&visit.headers)));
    Ok(response)
}

/// Remembers a language or a theme. It changes nothing but cookies, so it needs no sign-in.
pub(crate) async fn prefer(arrival: Arrival) -> Outcome {
    let https = arrival.console.is_https(&arrival.headers);
    let mut response = see_other(own_path(arrival.form.text("back")).unwrap_or("/"));
    if let language @ ("en" | "ru") = arrival.form.text("lang") {
        add_cookie(&mut response, cookies::set_language(language, https));
    }
    if let theme @ ("dark" | "light") = arrival.form.text("theme") {
        add_cookie(&mut response, cookies::set_theme(theme, https));
    }
    Ok(response)
}

fn add_cookie(response: &mut Response, cookie: Option<HeaderValue>) {
    if let Some(cookie) = cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}
