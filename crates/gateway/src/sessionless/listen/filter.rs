//! The filter of a `subscriptions/listen` request: which notifications a client receives.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolgate_json::{entries, imitates, items, members, peek, text};
use toolgate_mcp::{Notification, Refusal, code, method};

/// The maximum number of resources that one stream follows.
const MAX_RESOURCES: usize = 1_000;

/// The members of a filter; the last one belongs to the extension `tasks`.
const KNOWN: [&str; 5] = [
    "toolsListChanged",
    "promptsListChanged",
    "resourcesListChanged",
    "resourceSubscriptions",
    "taskIds",
];

/// The notifications that a client receives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) tools: bool,
    pub(super) prompts: bool,
    pub(super) resources: bool,
    pub(super) uris: BTreeSet<String>,
}

impl Filter {
    /// Parses the `params` of a listen request: its filter, and the tasks it names.
    pub(super) fn of(params: &str) -> Result<(Self, Vec<String>), Refusal> {
        let invalid = |message: &str| Refusal {
            code: code::INVALID_PARAMS,
            message: message.to_owned(),
            id: None,
        };
        let filter = peek(params, &["notifications"])?
            .filter(|raw| raw.starts_with('{'))
            .ok_or_else(|| invalid("`params.notifications` must be an object"))?;
        let [tools, prompts, resources, uris, tasks] = members(filter, KNOWN)?;
        for (raw, _) in entries(filter)?.unwrap_or_default() {
            let key = text(raw).unwrap_or_default();
            // Some servers would accept it as the known member, unseen by the policy.
            if let Some(known) = imitates(&key, &KNOWN) {
                return Err(invalid(&format!("write `{known}`, not {raw}")));
            }
            if !KNOWN.contains(&key.as_ref()) {
                let key: String = key.chars().take(100).collect();
                return Err(invalid(&format!("`params.notifications` may not hold `{key}`")));
            }
        }
        let switch = |raw: Option<&str>, key: &str| match raw {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(invalid(&format!("`{key}` must be true or false"))),
        };
        let strings = |raw: Option<&str>, key: &str| -> Result<Vec<String>, Refusal> {
            let Some(raw) = raw else { return Ok(Vec::new()) };
            let all = items(raw)?.map(|all| {
                all.into_iter().map(|raw| Some(text(raw)?.into_owned())).collect::<Option<Vec<_>>>()
            });
            let all = all.flatten();
            let all =
                all.ok_or_else(|| invalid(&format!("`{key}` must be an array of strings")))?;
            if all.len() > MAX_RESOURCES {
                return Err(invalid(&format!("`{key}` may hold {MAX_RESOURCES}; listen twice")));
            }
            Ok(all)
        };
        let [tools_key, prompts_key, resources_key, uris_key, tasks_key] = KNOWN;
        let filter = Self {
            tools: switch(tools, tools_key)?,
            prompts: switch(prompts, prompts_key)?,
            resources: switch(resources, resources_key)?,
            uris: strings(uris, uris_key)?.into_iter().collect(),
        };
        Ok((filter, strings(tasks, tasks_key)?))
    }

    /// Whether the filter selects a notification.
    pub(super) fn selects(&self, notification: &Notification<'_>) -> bool {
        match notification.method.as_ref() {
            method::TOOLS_LIST_CHANGED => self.tools,
            method::PROMPTS_LIST_CHANGED => self.prompts,
            method::RESOURCES_LIST_CHANGED => self.resources,
            method::RESOURCES_UPDATED => {
                let uri =
                    notification.params.and_then(|params| text(peek(params, &["uri"]).ok()??));
                uri.is_some_and(|uri| self.uris.contains(uri.as_ref()))
            }
            _ => false,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut all = Map::new();
        let switches = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        let on = switches.into_iter().filter(|(_, on)| *on);
        all.extend(on.map(|(name, on)| (name.to_owned(), on.into())));
        if !self.uris.is_empty() {
            let uris = self.uris.iter().cloned().map(Value::from).collect();
            all.insert("resourceSubscriptions".to_owned(), Value::Array(uris));
        }
        Value::Object(all)
    }
}
