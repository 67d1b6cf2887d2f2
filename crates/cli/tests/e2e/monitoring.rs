//! What the alert rules and the dashboard ask for is in the metrics of a running gateway.

use std::fs;
use std::path::Path;

use crate::gate::{Gate, Home};
use crate::peer::Peer;
use crate::wire::get;

const FILES: [&str; 2] = ["deploy/grafana/toolgate.json", "deploy/prometheus/toolgate.rules.yml"];

/// A metric and conditions on its labels: the label, whether it equals, and the value.
#[derive(Debug)]
struct Selector {
    metric: String,
    conditions: Vec<(String, bool, String)>,
}

#[test]
fn every_series_that_is_monitored_exists_from_the_start() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let gate = Gate::start_in(home, &format!("servers:\n{}", peer.entry("", "")));
    let metrics = get(&gate.admin(), "/metrics").body;
    let series: Vec<&str> = metrics.lines().filter(|line| !line.starts_with('#')).collect();
    let (mut missing, mut count) = (Vec::new(), 0);
    for file in FILES {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for selector in selectors(&fs::read_to_string(root.join(file)).unwrap()) {
            count += 1;
            if !series.iter().any(|line| selector.selects(line)) {
                missing.push(format!("{file}: {selector:?}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}\n{metrics}", missing.join("\n"));
    assert!(count >= 20, "{count} selectors");
}

impl Selector {
    /// Whether it selects the series of this line: `metric{label="value",…} 0`.
    fn selects(&self, line: &str) -> bool {
        let Some((series, _)) = line.rsplit_once(' ') else { return false };
        let (metric, labels) = series.split_once('{').unwrap_or((series, ""));
        let value = |name: &str| {
            let rest = labels.split(&format!("{name}=\"")).nth(1)?;
            rest.split('"').next()
        };
        let holds = |(label, equals, wanted): &(String, bool, String)| {
            value(label).is_some_and(|found| (found == wanted) == *equals)
        };
        metric == self.metric && self.conditions.iter().all(holds)
    }
}

/// The selectors in expressions. `job` comes from Prometheus.
fn selectors(text: &str) -> Vec<Selector> {
    let text = text.replace("\\\"", "\"");
    let is_expression = |line: &&str| line.contains("expr:") || line.contains("\"expr\"");
    let mut found = Vec::new();
    for line in text.lines().filter(is_expression) {
        for (at, _) in line.match_indices("toolgate_") {
            let (_, rest) = line.split_at(at);
            let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap();
            let (metric, rest) = rest.split_at(end);
            let within = rest.strip_prefix('{').and_then(|rest| rest.split('}').next());
            let conditions = within.unwrap_or_default().split(',').filter_map(|condition| {
                let (label, value) = condition.split_once('=')?;
                let equals = !label.ends_with('!');
                let value = value.trim_matches('"').to_owned();
                Some((label.trim_end_matches('!').to_owned(), equals, value))
            });
            let conditions = conditions.filter(|(label, ..)| label != "job").collect();
            found.push(Selector { metric: metric.to_owned(), conditions });
        }
    }
    found
}

#[test]
fn a_missing_series_is_found() {
    let all =
        selectors("expr: rate(toolgate_a_total{result=\"x\",job=\"$job\"}[5m]) + toolgate_b > 2");
    let line = "toolgate_a_total{server=\"s\",result=\"x\"} 0";
    assert!(all[0].selects(line) && all[1].selects("toolgate_b 7"));
    for other in
        ["toolgate_a_total{result=\"y\"} 0", "toolgate_a_total 0", "toolgate_b{result=\"x\"} 0"]
    {
        assert!(!all[0].selects(other), "{other}");
    }
    let other = selectors("expr: toolgate_a_total{result!=\"x\"}");
    assert!(!other[0].selects(line) && other[0].selects("toolgate_a_total{result=\"y\"} 0"));
}
