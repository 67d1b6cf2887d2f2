//! The lethal trifecta: one agent that can read private data, take in text of strangers, and send
//! data out.

use serde::Serialize;

use crate::label::Labels;

/// Which tools contribute to the trifecta.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Trifecta {
    /// Whether all three are there.
    pub present: bool,
    /// Tools that read private data.
    pub reads_private: Vec<String>,
    /// Tools that take in text of strangers.
    pub ingests_untrusted: Vec<String>,
    /// Tools that carry data out.
    pub sends_out: Vec<String>,
}

/// The trifecta of all tools that one agent can call, by their keys (`server/tool`).
pub fn trifecta(tools: impl IntoIterator<Item = (String, Labels)>) -> Trifecta {
    let mut found = Trifecta::default();
    for (key, labels) in tools {
        for (is, list) in [
            (labels.reads_private, &mut found.reads_private),
            (labels.ingests_untrusted, &mut found.ingests_untrusted),
            (labels.sends_out, &mut found.sends_out),
        ] {
            if is {
                list.push(key.clone());
            }
        }
    }
    found.present = !found.reads_private.is_empty()
        && !found.ingests_untrusted.is_empty()
        && !found.sends_out.is_empty();
    found
}
