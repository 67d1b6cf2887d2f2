//! Looking into JSON whose shape is not fixed.

use serde_json::Value;

static NULL: Value = Value::Null;

/// Members of a value.
pub(crate) trait Look {
    /// The member of this name; null if there is none.
    fn at(&self, key: &str) -> &Value;
}

impl Look for Value {
    fn at(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&NULL)
    }
}
