//! The Grafana dashboard and the alert rules use metrics that toolgate has.
//!
//! `docs/reference/metrics.md` is generated from the metrics of the product.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_metric_that_is_shown_exists() {
    let known = names(&read("docs/reference/metrics.md"));
    for file in ["deploy/grafana/toolgate.json", "deploy/prometheus/toolgate.rules.yml"] {
        let used = names(&read(file));
        assert!(used.len() > 5, "{file}: {used:?}");
        for name in used {
            // A histogram is exposed as buckets, a count and a sum.
            let base = ["_bucket", "_count", "_sum"].iter().find_map(|end| name.strip_suffix(end));
            let is_known = known.contains(&name) || base.is_some_and(|base| known.contains(base));
            assert!(is_known, "{file}: there is no metric `{name}`");
        }
    }
}

#[test]
fn the_dashboard_is_json_and_every_panel_has_a_query() {
    let dashboard: serde_json::Value =
        serde_json::from_str(&read("deploy/grafana/toolgate.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() >= 10);
    for panel in panels {
        let targets = panel["targets"].as_array().unwrap();
        assert!(targets.iter().all(|target| target["expr"].is_string()), "{panel}");
    }
}

fn names(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let words = text.split(|c: char| !is_part(c));
    words
        .filter(|word| word.starts_with("toolgate_") && word.len() > 12)
        .map(str::to_owned)
        .collect()
}

fn read(path: &str) -> String {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(path)).unwrap()
}
