//! People: list, create, rotate, revoke.

use askama::Template;
use axum::http::Method;
use serde_json::{Value, json};

use crate::assets;
use crate::items::PersonItem;
use crate::look::Look as _;
use crate::pages::token::NewToken;
use crate::problem::Problem;
use crate::shell::Shell;
use crate::shown::{Moment, shell_word};
use crate::visit::{Outcome, Visit, page, part};

#[derive(Template)]
#[template(path = "people.html")]
struct PeoplePage {
    s: Shell,
    assets: &'static str,
    people: Vec<PersonLine>,
    roles: Vec<(&'static str, String, String)>,
}

struct PersonLine {
    person: PersonItem,
    path: String,
    roles: Vec<String>,
    expires: Option<Moment>,
    is_you: bool,
}

const ROLES: [&str; 4] = ["viewer", "approver", "policy_manager", "admin"];

/// The page.
pub(crate) async fn show(visit: Visit) -> Outcome {
    let s = Shell::of(&visit, "people").await?;
    let people: Vec<PersonItem> = visit.list("/api/v1/people").await?;
    let people = people.into_iter().map(|person| PersonLine {
        path: part(&person.id),
        roles: person
            .roles
            .iter()
            .map(|role| s.tr(&format!("role-{}", role.replace('_', "-"))))
            .collect(),
        expires: Moment::of(person.expires.as_deref()),
        is_you: person.name == *visit.who.name,
        person,
    });
    let people = people.collect();
    let roles = ROLES.map(|role| {
        let key = role.replace('_', "-");
        (role, s.tr(&format!("role-{key}")), s.tr(&format!("role-{key}-what")))
    });
    page(&PeoplePage { s, assets: &assets::VERSION, people, roles: roles.to_vec() })
}

/// Creates a person, and shows the token once.
pub(crate) async fn create(visit: Visit) -> Outcome {
    let form = &visit.form;
    let (name, roles) = (form.text("name"), form.all("roles"));
    let mut body = json!({ "name": name, "roles": roles, "groups": form.words("groups") });
    if let (Some(end), Some(body)) = (form.some("expires"), body.as_object_mut()) {
        body.insert("expires".to_owned(), end.into());
    }
    let flags = roles
        .iter()
        .map(|role| format!(" --role {}", shell_word(role)))
        .collect::<Vec<_>>()
        .concat();
    let cli = format!("toolgate person create {}{flags}", shell_word(name));
    let sent = visit.send(&Method::POST, "/api/v1/people", &body).await;
    shown_once(&visit, sent, cli).await
}

/// Replaces the token, and shows the new one once.
pub(crate) async fn rotate(visit: Visit) -> Outcome {
    let id = visit.param("id");
    let target = format!("/api/v1/people/{}/rotate", part(id));
    let sent = visit.send(&Method::POST, &target, &Value::Null).await;
    let cli = format!("toolgate person rotate {id}");
    shown_once(&visit, sent, cli).await
}

async fn shown_once(visit: &Visit, sent: Result<Value, Problem>, cli: String) -> Outcome {
    let made = match sent {
        Ok(made) => made,
        refused => return visit.ended(refused, "/people", String::new()),
    };
    let text = |key: &str| made.at(key).as_str().unwrap_or_default().to_owned();
    // A person who replaces the own token is signed out, and must still see the new one.
    let s = match Shell::of(visit, "people").await {
        Ok(s) => s,
        Err(_) => Shell::outside(visit.language, visit.theme, "/people".to_owned()),
    };
    NewToken::of_person(s, text("name"), text("token"), cli).show()
}

/// Revokes a person's token.
pub(crate) async fn revoke(visit: Visit) -> Outcome {
    let target = format!("/api/v1/people/{}", part(visit.param("id")));
    let sent = visit.send(&Method::DELETE, &target, &Value::Null).await;
    visit.ended(sent, "/people", visit.tr("done-revoked"))
}
