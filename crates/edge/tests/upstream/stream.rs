//! Answers that come as event streams.

use std::time::Duration;

use toolgate_gateway::channel::SendError;

use crate::recorder::{Received, message, notification, soon};
use crate::script::{Script, exchange, reuses_connections, send};

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

fn answer() -> String {
    format!("event: message\ndata: {ANSWER}\n\n")
}

#[tokio::test]
async fn everything_on_the_stream_comes_in_order() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    let (result, mut record) =
        exchange(&mut server, &channel, message("{}"), |mut call| async move {
            call.stream().await;
            // Comments, a priming event and foreign events are no messages.
            call.chunk(": ping\r\n\r\nid: p\ndata:\n\nevent: other\ndata: {\"x\":1}\n\n").await;
            for piece in ["data: {\"n\"", ":1}\n", "\nevent: mess", "age\ndata: {\"n\":2}\n\n"] {
                call.chunk(piece).await;
            }
            call.chunk(&answer()).await;
            call.finish().await;
        })
        .await;
    result.unwrap();
    for expected in ["{\"n\":1}", "{\"n\":2}", ANSWER] {
        assert_eq!(record.message().await, expected);
    }
    assert_eq!(record.next().await, None);
    assert!(reuses_connections(&mut server, &channel).await);
}

#[tokio::test]
async fn a_stream_that_continues_after_the_answer_delays_nothing() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    let (sending, mut record) = send(&channel, message("{}"));
    let mut call = server.call().await;
    call.stream().await;
    call.chunk(&answer()).await;
    soon(sending).await.unwrap().unwrap();
    assert_eq!(record.message().await, ANSWER);
    call.hung_up().await;
}

#[tokio::test]
async fn a_notification_does_not_wait_for_a_stream() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    let (sending, mut record) = send(&channel, notification("{}"));
    let mut call = server.call().await;
    call.stream().await;
    call.chunk("data: {\"n\":1}\n\n").await;
    soon(sending).await.unwrap().unwrap();
    assert_eq!(record.message().await, "{\"n\":1}");
    call.finish().await;
}

#[tokio::test]
async fn a_stream_is_resumed_where_it_stopped() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    let (sending, mut record) = send(&channel, message("{}"));
    let mut call = server.call().await;
    call.stream().await;
    call.chunk("id: e1\nretry: 1\ndata:\n\n").await;
    call.finish().await;

    let mut call = server.call().await;
    assert_eq!(call.line, "GET /mcp?channel=secret HTTP/1.1");
    assert_eq!(call.header("accept"), Some("text/event-stream"));
    assert_eq!(call.header("last-event-id"), Some("e1"));
    call.stream().await;
    call.chunk("id: e2\ndata: {\"n\":1}\n\n").await;
    // Broken instead of ended: resumed all the same.
    drop(call);

    let mut call = server.call().await;
    assert_eq!(call.header("last-event-id"), Some("e2"));
    call.stream().await;
    call.chunk(&answer()).await;
    call.finish().await;
    soon(sending).await.unwrap().unwrap();

    let retry = Some(Duration::from_millis(1));
    let message = |text: &str| Received::Message(text.to_owned());
    let expected =
        [Received::Paused(retry), message("{\"n\":1}"), Received::Paused(retry), message(ANSWER)];
    assert_eq!(record.now(), expected);
}

#[tokio::test]
async fn a_server_may_be_polled_as_often_as_it_has_something_to_say() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    let (sending, _record) = send(&channel, message("{}"));
    for turn in 0..8 {
        let mut call = server.call().await;
        call.stream().await;
        call.chunk(&format!("id: e{turn}\nretry: 1\ndata:\n\n")).await;
        call.finish().await;
    }
    let mut call = server.call().await;
    assert_eq!(call.header("last-event-id"), Some("e7"));
    call.stream().await;
    call.chunk(&answer()).await;
    call.finish().await;
    soon(sending).await.unwrap().unwrap();
}

#[tokio::test]
async fn resuming_in_vain_ends() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    let (sending, mut record) = send(&channel, message("{}"));
    let mut call = server.call().await;
    call.stream().await;
    call.chunk("id: e1\nretry: 1\ndata:\n\n").await;
    call.finish().await;
    for fruitless in 0..5 {
        let mut call = server.call().await;
        assert_eq!(call.header("last-event-id"), Some("e1"));
        if fruitless % 2 == 0 {
            call.stream().await;
            call.finish().await;
        } else {
            call.answer(503, "", "").await;
        }
    }
    let result = soon(sending).await.unwrap();
    let Err(SendError::Lost(why)) = result else { panic!("{result:?}") };
    assert!(why.contains("resumed 5 times without result"), "{why}");
    assert!(server.is_quiet());
    assert_eq!(record.now().len(), 5);
}

#[tokio::test]
async fn what_cannot_be_resumed_is_lost() {
    // events before the end, whether a resume is asked for and refused
    let cases = [
        ("", false),
        ("data: {\"n\":1}\n\n", false),
        ("id: e1\ndata:\n\nid:\ndata:\n\n", false),
        ("id: e1\nretry: 1\n\n", true),
    ];
    for (events, asked) in cases {
        let mut server = Script::start().await;
        let (channel, _) = server.connect().await;
        let (sending, _record) = send(&channel, message("{}"));
        let mut call = server.call().await;
        call.stream().await;
        if !events.is_empty() {
            call.chunk(events).await;
        }
        call.finish().await;
        if asked {
            server.call().await.answer(405, "", "").await;
        }
        let result = soon(sending).await.unwrap();
        assert!(matches!(result, Err(SendError::Lost(_))), "{events:?}: {result:?}");
        assert!(server.is_quiet(), "{events:?}");
    }
}

#[tokio::test]
async fn closing_ends_a_pause() {
    let mut server = Script::start().await;
    let (channel, _) = server.connect().await;
    let (sending, mut record) = send(&channel, message("{}"));
    let mut call = server.call().await;
    call.stream().await;
    call.chunk("id: e1\nretry: 3600000\n\n").await;
    call.finish().await;
    let hour = Duration::from_hours(1);
    assert_eq!(record.next().await, Some(Received::Paused(Some(hour))));
    soon(channel.close()).await;
    assert!(matches!(soon(sending).await.unwrap(), Err(SendError::Lost(_))));
}
