//! What every page has around its content: navigation, person, mode, banners, texts.

use fluent_bundle::FluentValue;
use serde_json::Value;
use toolgate_control::Role;

use crate::flash::Flash;
use crate::look::Look as _;
use crate::problem::Problem;
use crate::texts::{Language, number};
use crate::visit::{Visit, part};

/// Something that needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Banner {
    pub(crate) text: String,
    pub(crate) href: String,
}

/// Navigation, person and state.
pub(crate) struct Shell {
    pub(crate) language: Language,
    /// `dark`, `light` or empty.
    pub(crate) theme: &'static str,
    /// The path and query of this page.
    pub(crate) here: String,
    /// The entry of the navigation that is current.
    pub(crate) section: &'static str,
    pub(crate) person: String,
    pub(crate) is_admin: bool,
    pub(crate) is_manager: bool,
    pub(crate) is_approver: bool,
    pub(crate) csrf: String,
    pub(crate) flash: Option<Flash>,
    pub(crate) banners: Vec<Banner>,
    /// `local`, `shadow`, `enforce` or `closed`.
    pub(crate) mode: &'static str,
    /// Policies of valid grants that are in shadow mode.
    pub(crate) in_shadow: Vec<String>,
    /// The id of the freeze of everything.
    pub(crate) frozen: Option<String>,
    /// Other freezes: `grant`, `server` or `session`, its name, and the id of the freeze.
    freezes: Vec<(&'static str, String, String)>,
    pub(crate) pending: usize,
    pub(crate) version: &'static str,
}

/// One entry of the navigation.
pub(crate) struct NavEntry {
    pub(crate) section: &'static str,
    pub(crate) href: &'static str,
    pub(crate) text: String,
    pub(crate) icon: &'static str,
}

const NAV: &[(&str, &str, &str)] = &[
    ("overview", "/", "M3 13h8V3H3zm0 8h8v-6H3zm10 0h8V11h-8zm0-18v6h8V3z"),
    ("approvals", "/approvals", "M9 16.2 4.8 12l-1.4 1.4L9 19 21 7l-1.4-1.4z"),
    ("servers", "/servers", "M4 4h16v6H4zm0 10h16v6H4zm3-7.5h2v1H7zm0 10h2v1H7z"),
    (
        "tools",
        "/tools",
        "M21 6.5 17.5 10 14 6.5 17.5 3a5 5 0 0 0-6 6.6L3 18.1 5.9 21l8.5-8.5A5 5 0 0 0 21 6.5z",
    ),
    (
        "policies",
        "/policies",
        "M12 2 4 5v6c0 5 3.4 9.7 8 11 4.6-1.3 8-6 8-11V5zm-1 14-4-4 1.4-1.4L11 13.2l5.6-5.6L18 9z",
    ),
    (
        "grants",
        "/grants",
        "M12.7 10A6 6 0 1 0 12.7 14H16v4h4v-4h2v-4zM7 14a2 2 0 1 1 0-4 2 2 0 0 1 0 4z",
    ),
    (
        "people",
        "/people",
        "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zm0 2c-3 0-8 1.5-8 4.5V20h16v-1.500C20 15.500 15 14 12 14z",
    ),
    ("sessions", "/sessions", "M4 5h16v10H4zm0 12h16v2H4z"),
    ("audit", "/audit", "M5 3h14v18H5zm3 4h8v1.500H8zm0 4h8v1.500H8zm0 4h5v1.500H8z"),
    ("catalog", "/catalog", "M4 4h7v16H6a2 2 0 0 1-2-2zm9 0h7v14a2 2 0 0 1-2 2h-5z"),
];

impl Shell {
    /// A page for a person who is not signed in.
    pub(crate) fn outside(language: Language, theme: &'static str, here: String) -> Self {
        Self {
            language,
            theme,
            here,
            section: "",
            person: String::new(),
            is_admin: false,
            is_manager: false,
            is_approver: false,
            csrf: String::new(),
            flash: None,
            banners: Vec::new(),
            mode: "",
            in_shadow: Vec::new(),
            frozen: None,
            freezes: Vec::new(),
            pending: 0,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// The shell of a page, with the state of the gateway.
    pub(crate) async fn of(visit: &Visit, section: &'static str) -> Result<Self, Problem> {
        Ok(Self::and_status(visit, section).await?.0)
    }

    /// The same, and the state of the gateway.
    pub(crate) async fn and_status(
        visit: &Visit,
        section: &'static str,
    ) -> Result<(Self, Value), Problem> {
        let status: Value = visit.get("/api/v1/status").await?;
        let pending = status.at("pending_approvals").as_u64().unwrap_or_default();
        let mut shell = Self::outside(visit.language, visit.theme, visit.here.clone());
        shell.section = section;
        shell.person = visit.who.name.to_string();
        shell.is_admin = visit.may(Role::Admin);
        shell.is_manager = visit.may(Role::PolicyManager);
        shell.is_approver = visit.may(Role::Approver);
        shell.csrf.clone_from(&visit.csrf);
        shell.flash = visit.take_flash();
        shell.mode = mode(&status);
        let in_shadow = status.at("shadow_policies").as_array().into_iter().flatten();
        shell.in_shadow = in_shadow.filter_map(|it| it.as_str().map(str::to_owned)).collect();
        shell.pending = usize::try_from(pending).unwrap_or(usize::MAX);
        shell.frozen =
            freezes(&status).find(|it| it.at("all") == true).and_then(|it| string(it, "id"));
        shell.freezes = freezes(&status)
            .filter_map(|it| {
                let named = |kind: &'static str| Some((kind, string(it, kind)?));
                let found = ["grant", "server", "session"].into_iter().find_map(named);
                let (kind, name) = found?;
                Some((kind, name, string(it, "id")?))
            })
            .collect();
        shell.banners = shell.banners_of(&status);
        Ok((shell, status))
    }

    /// The entries of the navigation.
    pub(crate) fn nav(&self) -> Vec<NavEntry> {
        let entry = |(section, href, icon): &(&'static str, &'static str, &'static str)| NavEntry {
            section,
            href,
            icon,
            text: self.tr(&format!("nav-{section}")),
        };
        NAV.iter().map(entry).collect()
    }

    /// The page as a tag of `lang`.
    pub(crate) fn tag(&self) -> &'static str {
        self.language.tag()
    }

    /// The mode in words.
    pub(crate) fn mode_text(&self) -> String {
        self.tr(&format!("mode-{}", self.mode))
    }

    /// The page of the first policy in shadow mode.
    pub(crate) fn shadow_href(&self) -> String {
        self.in_shadow.first().map(|name| format!("/policies/{}", part(name))).unwrap_or_default()
    }

    /// The id of the freeze of a grant, a server or a session.
    pub(crate) fn freeze_of(&self, kind: &str, name: &str) -> Option<&str> {
        let found = self.freezes.iter().find(|it| it.0 == kind && it.1 == name);
        found.map(|(_, _, id)| id.as_str())
    }

    /// How many policies are in shadow mode, in words.
    pub(crate) fn shadow_text(&self) -> String {
        self.trn("mode-some-shadow", &self.in_shadow.len())
    }

    /// The state of a server in words.
    pub(crate) fn state_text(&self, state: &str) -> String {
        self.tr(&format!("state-{state}"))
    }

    /// The name of a field.
    pub(crate) fn field_text(&self, field: &str) -> String {
        self.tr(&format!("field-{field}"))
    }

    /// A decision in words.
    pub(crate) fn decision_text(&self, decision: &str) -> String {
        self.tr(&format!("decision-{}", decision.replace('_', "-")))
    }

    /// A risk class in words.
    pub(crate) fn class_text(&self, class: &str) -> String {
        self.tr(&format!("class-{class}"))
    }

    /// A text.
    pub(crate) fn tr(&self, key: &str) -> String {
        self.language.text(key, &[])
    }

    /// A text about a number.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
    pub(crate) fn trn(&self, key: &str, n: &usize) -> String {
        self.language.text(key, &[("n", number(*n))])
    }

    /// A text about a value.
    pub(crate) fn trv(&self, key: &str, value: impl AsRef<str>) -> String {
        self.language.text(key, &[("value", FluentValue::from(value.as_ref().to_owned()))])
    }

    fn banners_of(&self, status: &Value) -> Vec<Banner> {
        let mut all = Vec::new();
        let mut add = |text: String, href: &str| all.push(Banner { text, href: href.to_owned() });
        for freeze in freezes(status) {
            let (text, href) = match (
                string(freeze, "grant"),
                string(freeze, "server"),
                string(freeze, "session"),
            ) {
                (Some(grant), _, _) => (self.trv("banner-frozen-grant", &grant), "/grants"),
                (_, Some(server), _) => (self.trv("banner-frozen-server", &server), "/servers"),
                (_, _, Some(session)) => (self.trv("banner-frozen-session", &session), "/sessions"),
                _ => (self.tr("banner-frozen-all"), "/"),
            };
            add(text, href);
        }
        if self.pending > 0 && self.section != "approvals" {
            add(self.trn("banner-pending", &self.pending), "/approvals");
        }
        let quarantined = status.at("quarantined_tools").as_u64().unwrap_or_default();
        if quarantined > 0 {
            let n = usize::try_from(quarantined).unwrap_or(usize::MAX);
            add(self.trn("banner-quarantined", &n), "/tools?state=quarantined");
        }
        if status.at("reload").at("result") == "rejected" {
            add(self.tr("banner-reload"), "/");
        }
        if status.at("durability") == "off" {
            add(self.tr("banner-not-recorded"), "/audit");
        }
        for said in status.at("attention").as_array().into_iter().flatten() {
            let said = said.as_str().unwrap_or_default();
            let named = |start: &str| said.strip_prefix(start)?.split_once('`');
            if let Some((name, _)) = named("session `").filter(|_| said.contains("two programs")) {
                add(self.trv("banner-conflict", name), "/sessions");
            } else if let Some((name, _)) =
                named("grant `").filter(|(_, rest)| rest.starts_with(" has no policy"))
            {
                add(self.trv("banner-no-policy", name), "/grants");
            }
        }
        for policy in status.at("policies").as_array().into_iter().flatten() {
            if policy.at("state") == "broken" {
                let name = string(policy, "name").unwrap_or_default();
                add(self.trv("banner-broken-policy", &name), "/policies");
            }
        }
        // A list that fills the screen hides the page.
        if all.len() > 3 {
            let more = all.len() - 2;
            all.truncate(2);
            all.push(Banner { text: self.trn("banner-more", &more), href: "/".to_owned() });
        }
        all
    }
}

fn freezes(status: &Value) -> impl Iterator<Item = &Value> {
    status.at("freezes").as_array().into_iter().flatten()
}

fn string(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn mode(status: &Value) -> &'static str {
    match status.at("mode").as_str() {
        Some("local") => "local",
        Some("grants") if status.at("all_in_shadow") == true => "shadow",
        Some("grants") => "enforce",
        _ => "closed",
    }
}
