use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use toolgate_audit::{ArgumentHashKey, ArgumentMode};
use toolgate_gateway::ArgumentRecording;
use toolgate_store::{Engine, EngineSettings, MemoryBackend};

use super::*;
use crate::serve::random::SystemIds;
use crate::serve::store::SystemClock;

const PAGE: &str = "../../docs/reference/metrics.md";

/// The labels that may exist, with their values.
const LABELS: [(&str, &str); 7] = [
    (
        "server",
        "a configured server; `sessions` for programs that dial in; `toolgate` for built-in tools and names that no server has",
    ),
    (
        "decision",
        "`allow`, `deny`, `hide`, `hold`; in shadow mode also `shadow_deny` and `shadow_hold`, for calls that passed",
    ),
    (
        "code",
        "`ok`, the `error_code` of the answer, or how the server ended the call: `tool_error`, `protocol_error`, `cancelled`",
    ),
    ("listener", "`mcp`, `sessions`, `admin`, `metrics`"),
    ("reason", "`no_token`, `bad_token`, `role`, `host`, `origin`"),
    (
        "result",
        "`ok`, `failed`, `rejected`; of requests: `answered`, `unavailable`, `timeout`, `unknown`, `cancelled`",
    ),
    ("version", "of `toolgate_build_info`"),
];

fn exposed() -> String {
    let now = Timestamp::UNIX_EPOCH;
    let store = Engine::inline(MemoryBackend::default(), EngineSettings::default(), now).unwrap();
    let writing = ArgumentRecording { mode: ArgumentMode::Keys, secret: ArgumentHashKey([0; 32]) };
    let ids = Arc::new(SystemIds::default());
    let admission = Admission::new(Arc::new(store), Arc::new(SystemClock), ids, writing);
    admission.metrics().add_server("files");
    let metrics = Metrics::default();
    drop(metrics.of_server("files"));
    let mut registry = Registry::with_prefix("toolgate");
    drop(register(&mut registry, &metrics, &admission));
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text
}

#[derive(Default)]
struct Metric {
    help: String,
    kind: String,
    labels: BTreeSet<String>,
    samples: usize,
}

/// The metrics of an exposition, by the name that queries use.
fn metrics(text: &str) -> BTreeMap<String, Metric> {
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    let mut last = String::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|it| it.split_once(' ')) {
            metrics.entry(name.to_owned()).or_default().help =
                help.trim_end_matches('.').to_owned();
            last = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' ')) {
            metrics.get_mut(&last).unwrap().kind = kind.1.to_owned();
        } else if !line.starts_with('#') {
            let metric = metrics.get_mut(&last).unwrap();
            metric.samples += 1;
            let labels = line.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
            let names = labels.iter().flat_map(|(labels, _)| labels.split(','));
            let names = names.filter_map(|label| label.split_once('=')).map(|(name, _)| name);
            metric.labels.extend(names.filter(|name| *name != "le").map(str::to_owned));
        }
    }
    let suffix = |kind: &str| match kind {
        "counter" => "_total",
        "info" => "_info",
        _ => "",
    };
    metrics
        .into_iter()
        .map(|(name, metric)| (format!("{name}{}", suffix(&metric.kind)), metric))
        .collect()
}

#[test]
fn every_metric_exists_at_zero_with_known_labels_and_a_plain_help_text() {
    let metrics = metrics(&exposed());
    assert!(metrics.len() > 20, "{:?}", metrics.keys());
    for (name, metric) in metrics {
        assert!(name.starts_with("toolgate_"), "{name}");
        assert!(metric.samples > 0, "{name} is absent until something happens");
        assert!(
            metric.help.starts_with(|c: char| c.is_ascii_uppercase()),
            "{name}: {}",
            metric.help
        );
        for label in &metric.labels {
            assert!(LABELS.iter().any(|(known, _)| known == label), "{name} has {label}");
        }
    }
}

#[test]
fn the_reference_page_lists_every_metric() {
    let mut page = String::from(
        "# Metrics\n\n\
         `GET /metrics` on the admin listener, and on `listen.metrics` if that is set, in the \
         OpenMetrics text format. On loopback it needs no token, elsewhere the token of a person with \
         the role `viewer`.\n\n\
         Every series exists at zero from the start, or from the moment its server is added. No label \
         has a value that an agent supplies.\n\n\
         This page is generated from the code (`UPDATE=1 cargo test -p toolgate --bin toolgate metrics`).\n\n\
         | metric | type | labels | meaning |\n|---|---|---|---|\n",
    );
    for (name, Metric { help, kind, labels, .. }) in metrics(&exposed()) {
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
        writeln!(page, "| `{name}` | {kind} | {labels} | {help} |").unwrap();
    }
    page.push_str("\n## Labels\n\n| label | values |\n|---|---|\n");
    for (label, values) in LABELS {
        writeln!(page, "| `{label}` | {values} |").unwrap();
    }
    page.push_str(
        "\n## Useful queries\n\n\
         | question | query |\n|---|---|\n\
         | calls denied, held and limited per minute | `60 * rate(toolgate_calls_total{decision=\"deny\"}[5m])`, `…{decision=\"hold\"}`, `…{code=\"rate_limited\"}` |\n\
         | what the policy would deny if it left shadow mode | `increase(toolgate_calls_total{decision=\"shadow_deny\"}[1d])` |\n\
         | 99th percentile of what toolgate adds before a call is sent | `histogram_quantile(0.99, rate(toolgate_admission_duration_seconds_bucket[5m]))` |\n\
         | failing logins | `rate(toolgate_auth_failures_total[5m]) > 0` |\n\
         | the disk does not keep up | `toolgate_audit_sync_lag_seconds > 1` |\n\
         | an edit of the configuration was rejected | `increase(toolgate_reloads_total{result=\"rejected\"}[10m]) > 0` |\n",
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), page, "run with UPDATE=1");
}
