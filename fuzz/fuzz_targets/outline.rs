//! Any answer in any pieces: its outline is the answer with an empty result, however it was cut;
//! what is passed on is the answer under another id, whole or visibly broken off.
//!
//! The first two bytes of the input choose the pieces, the rest is the answer.

#![no_main]

use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolgate_gateway::{RelayReader, Truncated, fuzz::pass};
use toolgate_mcp::{Incoming, Limits, Message, Outline, Payload, parse_server};

const ID: &str = r#""another id""#;

fuzz_target!(|input: &[u8]| {
    let Some((&[first, size], answer)) = input.split_first_chunk() else { return };
    let (first, rest) = answer.split_at((usize::from(first) * 4).min(answer.len()));
    let pieces: Vec<&[u8]> = rest.chunks(usize::from(size).max(1)).collect();
    let whole = outline(answer, &[]);
    let cut = outline(first, &pieces);
    if Outline::begin(first).is_some() {
        assert_eq!(cut, whole, "the pieces make a difference");
        check_passage(first, &pieces, cut.is_some());
    }
    if let Some(outline) = &whole {
        check_outline(answer, outline);
    }
});

fn outline(first: &[u8], pieces: &[&[u8]]) -> Option<Vec<u8>> {
    let mut outline = Outline::begin(first)?;
    for piece in pieces {
        outline.push(piece);
    }
    outline.finish()
}

/// Where the whole can be read, the outline reads the same but for the result.
fn check_outline(answer: &[u8], outline: &[u8]) {
    let text = std::str::from_utf8(answer).expect("an outline of what is no text");
    assert!(std::str::from_utf8(outline).is_ok() && outline.len() <= text.len());
    let Ok(tree) = serde_json::from_str::<Value>(text) else { return };
    let limits = Limits::default();
    match (parse_server(answer, &limits), parse_server(outline, &limits)) {
        (
            Ok(Incoming::One(Message::Response(whole))),
            Ok(Incoming::One(Message::Response(part))),
        ) => {
            assert_eq!(whole.id, part.id);
            let (Payload::Result(result), Payload::Result(empty)) = (&whole.payload, &part.payload)
            else {
                panic!("not a result: {text}")
            };
            assert_eq!(*empty, "{}");
            assert_eq!(serde_json::from_str::<Value>(result).unwrap(), tree["result"]);
            let at = result.as_ptr().addr() - text.as_ptr().addr();
            let mut expected = text.to_owned();
            expected.replace_range(at..at + result.len(), "{}");
            assert_eq!(outline, expected.as_bytes());
        }
        (Err(_), Err(_)) => {}
        (whole, part) => panic!("{text}: {whole:?} but {part:?}"),
    }
}

/// An agent has all of it or sees that it broke off.
fn check_passage(first: &[u8], pieces: &[&[u8]], is_answer: bool) {
    let size = first.len() + pieces.iter().map(|piece| piece.len()).sum::<usize>();
    for let_go in [true, false] {
        let beginning = Bytes::copy_from_slice(first);
        let outline = Outline::begin(&beginning).expect("it was begun before");
        let place = outline.id();
        let (mut relay_writer, relay_reader) =
            pass(outline, &beginning, size, ID).expect("room for the id");
        for piece in pieces {
            relay_writer.push(Bytes::copy_from_slice(piece));
        }
        let mut all = [first, &pieces.concat()].concat();
        all.splice(place, ID.bytes());
        match relay_writer.finish() {
            Some((_, held)) if let_go => {
                held.release();
                assert_eq!(read(relay_reader), (all, Ok(())));
            }
            held => {
                assert_eq!(held.is_some(), is_answer);
                drop(held);
                let (seen, end) = read(relay_reader);
                assert!(end.is_err() && seen.len() < all.len() && all.starts_with(&seen));
            }
        }
    }
}

fn read(mut relay_reader: RelayReader) -> (Vec<u8>, Result<(), Truncated>) {
    let (mut all, mut context) = (Vec::new(), Context::from_waker(Waker::noop()));
    loop {
        match relay_reader.poll_next(&mut context) {
            Poll::Ready(Some(Ok(piece))) => all.extend_from_slice(&piece),
            Poll::Ready(Some(Err(broken))) => return (all, Err(broken)),
            Poll::Ready(None) => return (all, Ok(())),
            Poll::Pending => panic!("nothing more can come"),
        }
    }
}
