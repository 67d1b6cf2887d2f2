//! The tables `offer.json` and `answers.json`, as rmcp's types.

use std::sync::LazyLock;

use rmcp::model::ErrorData;
use serde::de::DeserializeOwned;
use serde_json::Value;

static OFFER: LazyLock<Value> = LazyLock::new(|| parse(include_str!("offer.json")));
static ANSWERS: LazyLock<Value> = LazyLock::new(|| parse(include_str!("answers.json")));

/// A list of offers: `tools`, `resources`, `resourceTemplates`, `prompts`.
pub(super) fn offer<T: DeserializeOwned>(list: &str) -> Result<T, ErrorData> {
    typed(OFFER.get(list).cloned().unwrap_or_default())
}

/// The answer for a name of a kind (`tools`, `resources`, `prompts`), if the table has one.
pub(super) fn answer(kind: &str, name: &str) -> Option<&'static Value> {
    ANSWERS.get(kind)?.get(name)
}

/// JSON as one of rmcp's types; a mismatch is a bug of this server.
pub(super) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| {
        let kind = std::any::type_name::<T>();
        ErrorData::internal_error(format!("the table does not fit {kind}: {error}"), None)
    })
}

fn parse(table: &str) -> Value {
    serde_json::from_str(table).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, Prompt, PromptMessage, Resource, ResourceTemplate, Tool};

    use super::*;

    #[test]
    fn the_tables_fit_the_types() {
        assert_eq!(offer::<Vec<Tool>>("tools").unwrap().len(), 35);
        assert_eq!(offer::<Vec<Resource>>("resources").unwrap().len(), 2);
        assert_eq!(offer::<Vec<ResourceTemplate>>("resourceTemplates").unwrap().len(), 1);
        assert_eq!(offer::<Vec<Prompt>>("prompts").unwrap().len(), 5);
        for (_, result) in ANSWERS["tools"].as_object().unwrap() {
            typed::<CallToolResult>(result.clone()).unwrap();
        }
        for (_, messages) in ANSWERS["prompts"].as_object().unwrap() {
            typed::<Vec<PromptMessage>>(messages.clone()).unwrap();
        }
    }
}
