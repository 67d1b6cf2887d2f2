use bytes::Bytes;
use proptest::prelude::*;

use super::{Decoder, Event, comment, event, prime, retry};
use crate::limits::TooLarge;

fn decode(max: usize, chunks: &[&[u8]]) -> (Vec<Event>, Result<(), TooLarge>) {
    let mut events = Vec::new();
    let mut decoder = Decoder::new(max);
    for chunk in chunks {
        if let Err(error) = decoder.push(chunk, &mut |event| events.push(event)) {
            return (events, Err(error));
        }
    }
    (events, Ok(()))
}

fn data(data: &str) -> Event {
    Event { data: Bytes::copy_from_slice(data.as_bytes()), ..Event::default() }
}

fn id(id: &str, event: Event) -> Event {
    Event { id: Some(id.to_owned()), ..event }
}

#[test]
fn events() {
    let named = |name: &str, event: Event| Event { event: Some(name.to_owned()), ..event };
    let after = |ms: u64, event: Event| Event { retry: Some(ms), ..event };
    for (stream, expected) in [
        ("", vec![]),
        ("data: a\n\n", vec![data("a")]),
        ("data: a\n", vec![]),
        ("data: a", vec![]),
        ("data:a\n\ndata:  b \n\n", vec![data("a"), data(" b ")]),
        ("data: a\r\rdata: b\r\n\r\n", vec![data("a"), data("b")]),
        ("data: a\r\n\rdata: b\n\r\n", vec![data("a"), data("b")]),
        ("data: a\ndata:\ndata: b\n\n", vec![data("a\n\nb")]),
        ("data: a\r\ndata: b\r\n\r\n", vec![data("a\nb")]),
        ("data\ndata\n\n", vec![data("\n")]),
        ("data\n\n", vec![data("")]),
        ("data:\n\n", vec![data("")]),
        ("data\r\n\r\n", vec![data("")]),
        ("data: a:b\n\n", vec![data("a:b")]),
        ("id: 7\ndata: a\n\n", vec![id("7", data("a"))]),
        ("id: 7\n\n", vec![id("7", data(""))]),
        ("id: 7\ndata: \n\n", vec![id("7", data(""))]),
        ("id\n\n", vec![id("", data(""))]),
        ("id: 7\n\ndata: a\n\n", vec![id("7", data("")), data("a")]),
        ("id: a\0b\ndata: x\n\n", vec![data("x")]),
        ("id: 1\nid: 2\ndata: x\n\n", vec![id("2", data("x"))]),
        ("event: endpoint\ndata: /x\n\n", vec![named("endpoint", data("/x"))]),
        ("event: ping\n\ndata: a\n\n", vec![data("a")]),
        ("retry: 500\n\n", vec![after(500, data(""))]),
        ("retry: 5 0\nretry: -1\nretry:\nretry\n\n", vec![]),
        ("retry: 99999999999999999999999\ndata: a\n\n", vec![data("a")]),
        (": hello\n\n:\n\n", vec![]),
        (":data: a\ndata: b\n: c\n\n", vec![data("b")]),
        ("unknown: 1\nDATA: 2\n data: 3\ndatax: 4\ndat: 5\ndata : 6\n\n", vec![]),
        ("\u{feff}data: a\n\n", vec![data("a")]),
        ("\u{feff}\u{feff}data: a\n\n", vec![]),
        ("\u{feff}", vec![]),
        ("data: a\n\n\u{feff}data: b\n\n", vec![data("a")]),
        ("\n\n\n\r\r\ndata: ы\n\n", vec![data("ы")]),
    ] {
        assert_eq!(decode(64, &[stream.as_bytes()]), (expected.clone(), Ok(())), "{stream:?}");
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(decode(64, &bytes), (expected, Ok(())), "{stream:?} byte by byte");
    }
}

#[test]
fn what_only_looks_like_a_byte_order_mark_is_part_of_the_line() {
    let (events, _) = decode(64, &[b"\xef\xbbdata: a\ndata: b\n\n"]);
    assert_eq!(events, vec![data("b")]);
    let (events, _) = decode(64, &[b"\xef", b"\xbb", b"\n", b"data: b\n\n"]);
    assert_eq!(events, vec![data("b")]);
}

#[test]
fn an_event_comes_with_its_last_line_break() {
    let (events, _) = decode(64, &[b"data: a\r\n\r"]);
    assert_eq!(events, vec![data("a")]);
}

#[test]
fn long_events() {
    let long = "x".repeat(11);
    for stream in [
        format!("data: {long}\n\n"),
        format!("data: {long}"),
        format!("{long}{long}: 1"),
        format!("id: {long}\n\n"),
        "data: 12345\ndata: 12345\n\n".to_owned(),
        "id: 1234\nevent: 1234\ndata: 123\n\n".to_owned(),
        "data\n".repeat(13),
    ] {
        let stream = format!("data: a\n\n{stream}");
        let (events, end) = decode(10, &[stream.as_bytes()]);
        assert_eq!((events, end), (vec![data("a")], Err(TooLarge { max: 10 })), "{stream:?}");
    }
    for stream in [
        format!("data: {}\n\n", &"x".repeat(10)),
        format!(":{}\ndata: 1\n\n", &"x".repeat(1000)),
        "data: 1\n\n".repeat(100),
        "data: 123456789\ndata:\n\n".to_owned(),
        "id: 123\n\ndata: 1234567890\n\n".to_owned(),
    ] {
        assert_eq!(decode(10, &[stream.as_bytes()]).1, Ok(()), "{stream:?}");
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(decode(10, &bytes).1, Ok(()), "{stream:?} byte by byte");
    }
}

#[test]
fn after_a_long_event_nothing_comes() {
    let mut decoder = Decoder::new(3);
    decoder.push(b"data: 1234", &mut |_| panic!("no event")).unwrap_err();
    assert_eq!(decoder.data.capacity(), 0);
    decoder.push(b"\n\ndata: 1\n\n", &mut |_| panic!("no event")).unwrap_err();
}

#[test]
fn written_events() {
    for (written, expected) in [
        (event(None, None, b"{}"), "data: {}\n\n"),
        (event(Some("a\n1\0"), Some("m\0\r"), b""), "id: a1\nevent: m\0\ndata: \n\n"),
        (event(None, None, b"a\nb\r\nc\rd\n"), "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"),
        (prime("7", Some(500)), "id: 7\nretry: 500\ndata: \n\n"),
        (prime("7", None), "id: 7\ndata: \n\n"),
        (retry(9), "retry: 9\n\n"),
        (comment("k\ndata: x"), ": kdata: x\n\n"),
    ] {
        assert_eq!(written, expected);
    }
}

/// The same, from the whole text and as the standard tells it: normalise, split, look at each line.
fn naive(stream: &[u8]) -> Vec<Event> {
    let text = String::from_utf8_lossy(stream).replace("\r\n", "\n").replace('\r', "\n");
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut events = Vec::new();
    let (mut event, mut lines) = (Event::default(), Vec::new());
    let finished = text.rfind('\n').map_or("", |end| text.split_at(end).0);
    if !text.contains('\n') {
        return events;
    }
    for line in finished.split('\n') {
        if line.is_empty() {
            event.data = Bytes::from(lines.join("\n"));
            if !lines.is_empty() || event.id.is_some() || event.retry.is_some() {
                events.push(std::mem::take(&mut event));
            }
            (event, lines) = (Event::default(), Vec::new());
            continue;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match name {
            "data" => lines.push(value),
            "event" => event.event = Some(value),
            "id" if !value.contains('\0') => event.id = Some(value),
            "retry" if value.bytes().all(|b| b.is_ascii_digit()) => {
                event.retry = value.parse().ok().or(event.retry);
            }
            _ => {}
        }
    }
    events
}

fn chunked<'s>(stream: &'s [u8], cuts: &[usize]) -> Vec<&'s [u8]> {
    let mut rest = stream;
    let mut chunks = Vec::new();
    for cut in cuts {
        let (chunk, after) = rest.split_at((*cut).min(rest.len()));
        chunks.push(chunk);
        rest = after;
    }
    chunks.push(rest);
    chunks
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0_usize..12, 0..80)
}

proptest! {
    #[test]
    fn agrees_with_the_naive_reader_whatever_the_chunks(
        pieces in proptest::collection::vec(prop_oneof![
            Just("data"), Just("data:"), Just("data: "), Just("id"), Just("id: "), Just("event:"),
            Just("retry: "), Just("42"), Just(":"), Just(" "), Just("\n"), Just("\n"), Just("\r"),
            Just("\r\n"), Just("\n\n"), Just("x"), Just("ы"), Just("\0"), Just("\u{feff}"),
        ], 0..60),
        cuts in cuts(),
    ) {
        let stream = pieces.concat();
        let decoded = decode(1000, &chunked(stream.as_bytes(), &cuts));
        prop_assert_eq!(decoded, (naive(stream.as_bytes()), Ok(())));
    }

    #[test]
    fn what_was_written_is_read(
        events in proptest::collection::vec((
            proptest::option::of("[^\\r\\n\0]{0,8}"),
            proptest::option::of("[^\\r\\n]{0,8}"),
            "[^\\r]{0,20}",
        ), 0..8),
        cuts in cuts(),
    ) {
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for (id, name, data) in events {
            stream.extend(event(id.as_deref(), name.as_deref(), data.as_bytes()));
            stream.extend(comment("between"));
            expected.push(Event { id, event: name, data: Bytes::from(data), retry: None });
        }
        prop_assert_eq!(decode(1000, &chunked(&stream, &cuts)), (expected, Ok(())));
    }
}
