//! The load generator against the echo server, and against wrong answers.

use std::time::Duration;

use http::Uri;

use super::client::Received;
use super::report::percentile;
use super::request::Asker;
use super::{LoadLength, LoadPlan, LoadRequest, run};
use crate::echo::{self, EchoOptions, EchoServer};
use crate::proxy::BareProxy;

fn plan(url: &str, ask: LoadRequest, clients: usize, measured: u64) -> LoadPlan {
    let length = LoadLength::Count { warm_up: 2, measured };
    let (url, prefix) = (url.parse().unwrap(), String::new());
    LoadPlan { url, ask, prefix, token: None, clients, length }
}

async fn server(sse: bool) -> EchoServer {
    echo::start_with(EchoOptions { tools: 40, sse, ..EchoOptions::default() }).await.unwrap()
}

#[tokio::test]
async fn a_thousand_requests_have_a_thousand_right_answers() {
    for sse in [false, true] {
        let echo = server(sse).await;
        let report = run(&plan(echo.url(), LoadRequest::Echo, 8, 125)).await.unwrap();
        assert_eq!((report.requests, report.errors), (1_000, 0), "{report:?}");
        assert_eq!(echo.calls(), 1_016, "warm-up included, nothing sent twice");
        assert_eq!(report.answers, 1_016);
        assert_eq!(echo.sessions(), 0, "each client closes its session");
        assert!(report.p50_us <= report.p90_us && report.p90_us <= report.p99_us);
        assert!(report.p99_us <= report.max_us && report.per_second > 0.0);
    }
}

#[tokio::test]
async fn every_mode_is_answered_directly_and_through_the_bare_proxy() {
    for sse in [false, true] {
        let echo = server(sse).await;
        let upstream: Uri = echo.url().parse().unwrap();
        let proxy = BareProxy::bind(&upstream).await.unwrap();
        let through = format!("{}/mcp", proxy.origin().unwrap());
        let proxying = tokio::spawn(proxy.run());
        for ask in [
            LoadRequest::Echo,
            LoadRequest::List { tools: 40 },
            LoadRequest::Big { size: 300_000 },
            LoadRequest::Structured { size: 300_000 },
        ] {
            for url in [echo.url(), &through] {
                let report = run(&plan(url, ask, 3, 5)).await.unwrap();
                assert_eq!((report.requests, report.errors), (15, 0), "{ask:?} {report:?}");
            }
        }
        proxying.abort();
    }
}

#[tokio::test]
async fn a_list_of_the_wrong_length_is_an_error() {
    let echo = server(false).await;
    let report = run(&plan(echo.url(), LoadRequest::List { tools: 41 }, 1, 3)).await.unwrap();
    assert_eq!((report.requests, report.errors), (0, 5));
    assert_eq!(report.first_error.unwrap(), "40 tools are listed instead of 41");
}

#[tokio::test]
async fn a_lost_session_makes_errors_and_no_samples() {
    let echo = server(false).await;
    let plan = plan(echo.url(), LoadRequest::Echo, 1, 200);
    let forget = async {
        while echo.calls() < 50 {
            tokio::task::yield_now().await;
        }
        echo.forget_sessions();
    };
    let (report, ()) = tokio::join!(run(&plan), forget);
    let report = report.unwrap();
    assert_eq!(report.requests as u64 + 2, echo.calls(), "only what was carried out is measured");
    assert!(report.errors > 0);
    assert_eq!(report.first_error.unwrap(), "status 404 Not Found: `no such session`");
}

#[test]
fn a_wrong_answer_is_distinguished_from_the_right_one() {
    let asker = Asker::new(LoadRequest::Echo, "there__");
    let request = asker.request(3, 6);
    let sent = String::from_utf8(request.body.to_vec()).unwrap();
    assert!(sent.contains(r#""name":"there__echo""#), "{sent}");
    let text = |text: &str| format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#);
    let right = text(r#""{\"text\":\"client 3 request 6\"}""#);
    for (id, member, value, wrong) in [
        ("7", "result", &right, None),
        ("8", "result", &right, Some("asked with id 7, got 8")),
        (
            "7",
            "result",
            &text(r#""{\"text\":\"client 4 request 6\"}""#),
            Some("client 4 request 6"),
        ),
        ("7", "result", &r#"{"content":[]}"#.to_owned(), Some("0 blocks")),
        ("7", "error", &r#"{"code":-1}"#.to_owned(), Some("the answer is an error")),
    ] {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{value}}}"#);
        let checked = asker.check(&request, &Received::json_for_test(&answer));
        match wrong {
            None => checked.unwrap(),
            Some(why) => {
                let error = checked.unwrap_err().to_string();
                assert!(error.contains(why), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_refused_connection_names_the_address() {
    let echo = server(false).await;
    let url = echo.url().to_owned();
    drop(echo);
    tokio::task::yield_now().await;
    let failed = run(&plan(&url, LoadRequest::Echo, 1, 1)).await.unwrap_err();
    assert!(failed.to_string().contains(&url), "{failed:#}");
}

#[test]
fn percentiles_are_nearest_ranks() {
    let samples: Vec<_> = (1..=10).map(Duration::from_micros).collect();
    for (percent, micros) in [(1, 1), (10, 1), (11, 2), (50, 5), (90, 9), (99, 10), (100, 10)] {
        assert_eq!(percentile(&samples, percent), Duration::from_micros(micros), "{percent}");
    }
    assert_eq!(percentile(&[], 50), Duration::ZERO);
}
