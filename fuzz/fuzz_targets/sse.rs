//! Any stream: the same events whatever the chunks, and no more held than agreed.
//!
//! The first bytes of the input choose the limit and the chunks, the rest is the stream.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate_mcp::TooLarge;
use toolgate_mcp::sse::{Decoder, Event, event};

fuzz_target!(|input: &[u8]| {
    let Some((&[max, cut, step], stream)) = input.split_first_chunk() else { return };
    let max = usize::from(max) * 4;
    let whole = decode(max, [stream].into_iter());
    let mut size = usize::from(cut);
    let mut rest = stream;
    let chunks = std::iter::from_fn(|| {
        let (chunk, after) = rest.split_at(size.min(rest.len()).max(1).min(rest.len()));
        rest = after;
        size = (size + usize::from(step)) % 32;
        (!chunk.is_empty()).then_some(chunk)
    });
    assert_eq!(whole, decode(max, chunks));
    for read in &whole.0 {
        let fields = [&read.id, &read.event].into_iter().flatten().map(String::len).sum::<usize>();
        // What is not UTF-8 grows when it is replaced.
        assert!(read.data.len() <= max + 1 && fields <= 3 * max);
        check_round(read);
    }
});

fn decode<'s>(
    max: usize,
    chunks: impl Iterator<Item = &'s [u8]>,
) -> (Vec<Event>, Option<TooLarge>) {
    let mut events = Vec::new();
    let mut decoder = Decoder::new(max);
    let mut end = None;
    for chunk in chunks {
        end = end.or(decoder.push(chunk, &mut |event| events.push(event)).err());
    }
    (events, end)
}

/// What was read can be written and read again.
fn check_round(read: &Event) {
    let written = event(read.id.as_deref(), read.event.as_deref(), &read.data);
    let (again, end) = decode(usize::MAX, [&written[..]].into_iter());
    assert_eq!(end, None);
    assert_eq!(again, [Event { retry: None, ..read.clone() }]);
}
