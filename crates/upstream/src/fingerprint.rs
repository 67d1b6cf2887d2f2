//! Fingerprints: SHA-256 over the canonical JSON of a definition, all fields.

use std::collections::HashMap;

use parking_lot::Mutex;
use toolgate_audit::Hash;
use toolgate_json::canonical;

/// The fingerprint of a definition as its server wrote it; `None` if it has no canonical form.
pub fn fingerprint(definition: &str) -> Option<Hash> {
    canonical(definition).ok().map(|canonical| Hash::of(canonical.as_bytes()))
}

/// The fingerprints of a list, computed on first use.
#[derive(Debug, Default)]
pub(crate) struct Fingerprints(Mutex<HashMap<Box<str>, Option<Hash>>>);

impl Fingerprints {
    pub(crate) fn get(&self, own: &str, compute: impl FnOnce() -> Option<Hash>) -> Option<Hash> {
        if let Some(known) = self.0.lock().get(own) {
            return *known;
        }
        let found = compute();
        self.0.lock().insert(own.into(), found);
        found
    }
}

#[cfg(test)]
mod tests {
    use toolgate_admission::list_kind::Kind;

    use super::*;
    use crate::lists::Builder;
    use crate::names::Naming;

    #[test]
    fn a_fingerprint_is_over_what_the_server_wrote() {
        let tools = [
            r#"{"inputSchema":{"type":"object"}, "name":"a", "x":1.0}"#,
            r#"{"name":"b","_meta":{"ui":{"resourceUri":"ui://w/1","k":[1e5]}}}"#,
            r#"{"name":"\u0063\"d","title":"C"}"#,
        ];
        for bare in [false, true] {
            let naming = Naming::new("files", bare);
            let mut builder = Builder::new(Kind::Tools, &naming);
            builder.add(&format!(r#"{{"tools":[{}]}}"#, tools.join(","))).unwrap();
            let list = builder.finish();
            for (own, raw) in ["a", "b", "c\"d"].into_iter().zip(tools) {
                let expected = canonical(raw).ok().map(|text| Hash::of(text.as_bytes()));
                assert_eq!(list.fingerprint(&naming, own), expected, "{own}");
                assert_eq!(list.fingerprint(&naming, own), expected, "{own}, again");
            }
            assert_eq!(list.fingerprint(&naming, "other"), None);
        }
    }
}
