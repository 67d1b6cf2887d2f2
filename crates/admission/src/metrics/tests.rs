use prometheus_client::encoding::text::encode;
use toolgate_audit::Effect;

use super::*;

fn text(metrics: &CallMetrics) -> String {
    let mut registry = Registry::with_prefix("toolgate");
    metrics.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text
}

#[track_caller]
fn check(metrics: &CallMetrics, line: &str) {
    let text = text(metrics);
    assert!(text.lines().any(|other| other == line), "no `{line}` in\n{text}");
}

#[test]
fn the_series_of_a_server_exist_before_its_first_call() {
    let metrics = CallMetrics::new();
    metrics.add_server("files");
    metrics.add_server("files");
    for server in ["files", "sessions", "toolgate"] {
        for (decision, code) in [
            ("allow", "ok"),
            ("allow", "upstream_timeout"),
            ("deny", "policy_denied"),
            ("deny", "rate_limited"),
            ("hide", "policy_denied"),
            ("hold", "approval_required"),
            ("shadow_deny", "ok"),
        ] {
            let labels = format!(r#"server="{server}",decision="{decision}",code="{code}""#);
            check(&metrics, &format!("toolgate_calls_total{{{labels}}} 0"));
        }
        check(&metrics, &format!(r#"toolgate_call_duration_seconds_count{{server="{server}"}} 0"#));
    }
}

#[test]
fn a_call_is_counted_once_however_it_ends() {
    let metrics = CallMetrics::new();
    metrics.add_server("files");
    let admitted = |decision| metrics.of("files").admitted(decision);
    let (ms, took) = (Duration::from_millis, Duration::from_millis(3));
    let done = Ended::new(Outcome::Ok, Effect::Done);
    admitted(Decision::Allow).ended(&done, took, Some(ms(2)));
    admitted(Decision::ShadowDeny).ended(&done, took, None);
    let timeout =
        Ended { code: Some("upstream_timeout"), ..Ended::new(Outcome::Timeout, Effect::Unknown) };
    admitted(Decision::Allow).ended(&timeout, Duration::from_secs(200), None);
    admitted(Decision::Allow).abandoned();
    drop(admitted(Decision::Allow));
    for (decision, code) in [
        ("allow", "ok"),
        ("shadow_deny", "ok"),
        ("allow", "upstream_timeout"),
        ("allow", "cancelled"),
        ("allow", "outcome_unknown"),
    ] {
        let labels = format!(r#"server="files",decision="{decision}",code="{code}""#);
        check(&metrics, &format!("toolgate_calls_total{{{labels}}} 1"));
    }
    check(&metrics, r#"toolgate_call_duration_seconds_bucket{le="0.0025",server="files"} 0"#);
    check(&metrics, r#"toolgate_call_duration_seconds_bucket{le="0.005",server="files"} 2"#);
    check(&metrics, r#"toolgate_call_duration_seconds_bucket{le="+Inf",server="files"} 3"#);
    check(&metrics, r#"toolgate_call_duration_seconds_sum{server="files"} 200.006"#);
    check(&metrics, r#"toolgate_upstream_duration_seconds_count{server="files"} 1"#);
}

#[test]
fn names_that_are_not_servers_share_one_series() {
    let metrics = CallMetrics::new();
    for name in ["", "whatever an agent sends", "toolgate"] {
        drop(metrics.of(name).admitted(Decision::Allow));
    }
    let labels = r#"server="toolgate",decision="allow",code="outcome_unknown""#;
    check(&metrics, &format!("toolgate_calls_total{{{labels}}} 3"));
    assert!(!text(&metrics).contains("whatever"));
}
