//! The JSON Schema of the file, for editors and for the reference page.

use serde_json::Value;

use crate::settings::RawConfig;

/// JSON Schema 2020-12 of `toolgate.yaml`, generated from the definitions that read it.
pub fn schema() -> Value {
    schemars::schema_for!(RawConfig).to_value()
}
