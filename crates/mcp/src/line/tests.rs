use bytes::Bytes;
use proptest::prelude::*;

use super::LineDecoder;
use crate::limits::TooLarge;

/// All lines of a stream that comes in these chunks.
fn decode(max: usize, chunks: &[&[u8]]) -> (Vec<Bytes>, Result<(), TooLarge>) {
    let mut lines = Vec::new();
    let mut decoder = LineDecoder::new(max);
    for chunk in chunks {
        if let Err(error) = decoder.push(chunk, &mut |line| lines.push(line)) {
            return (lines, Err(error));
        }
    }
    lines.extend(decoder.finish());
    (lines, Ok(()))
}

#[test]
fn lines() {
    for (stream, expected) in [
        ("", &[][..]),
        ("a\nb\n", &["a", "b"]),
        ("a\r\nb\r\n", &["a", "b"]),
        ("a\nb", &["a", "b"]),
        ("a\nb\r", &["a", "b"]),
        ("\n\r\n \t\n\na\n\n", &["a"]),
        (" a \n", &[" a "]),
        ("a\rb\n", &["a\rb"]),
        ("a\r\r\n", &["a\r"]),
        ("  ", &[]),
    ] {
        assert_eq!(decode(8, &[stream.as_bytes()]), (owned(expected), Ok(())), "{stream:?}");
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(decode(8, &bytes), (owned(expected), Ok(())), "{stream:?} byte by byte");
    }
}

fn owned(lines: &[&str]) -> Vec<Bytes> {
    lines.iter().map(|line| Bytes::copy_from_slice(line.as_bytes())).collect()
}

#[test]
fn long_lines() {
    let too_large = Err(TooLarge { max: 3 });
    for (chunks, lines, end) in [
        (&["abc\n", "abc\r\n", "abc"][..], &["abc", "abc", "abc"][..], Ok(())),
        (&["ab", "c", "\r", "\nx"], &["abc", "x"], Ok(())),
        (&["a\nabcd\nb\n"], &["a"], too_large),
        (&["a\nab", "cd"], &["a"], too_large),
        (&["abc\r", "x"], &[], too_large),
        (&["abcd"], &[], too_large),
    ] {
        let chunks: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.as_bytes()).collect();
        assert_eq!(decode(3, &chunks), (owned(lines), end), "{chunks:?}");
    }
}

#[test]
fn after_a_long_line_nothing_comes() {
    let mut decoder = LineDecoder::new(3);
    decoder.push(b"abcd", &mut |_| panic!("no line")).unwrap_err();
    decoder.push(b"\na\n", &mut |_| panic!("no line")).unwrap_err();
    assert_eq!(decoder.finish(), None);
}

#[test]
fn an_endless_line_is_not_buffered() {
    let mut decoder = LineDecoder::new(1000);
    let chunk = [b'x'; 300];
    while decoder.push(&chunk, &mut |_| panic!("no line")).is_ok() {
        assert!(decoder.partial.len() <= 1000);
    }
    assert_eq!(decoder.partial.capacity(), 0);
}

proptest! {
    #[test]
    fn chunks_make_no_difference(
        stream in proptest::collection::vec(prop_oneof![
            4 => Just(b'a'), 2 => Just(b'\n'), 1 => Just(b'\r'), 1 => Just(b' '), 1 => any::<u8>(),
        ], 0..200),
        cuts in proptest::collection::vec(1_usize..20, 0..50),
    ) {
        let mut chunks = Vec::new();
        let mut rest = &stream[..];
        for cut in cuts {
            let (chunk, after) = rest.split_at(cut.min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        chunks.push(rest);
        let naive: Vec<Bytes> = stream
            .split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| !line.trim_ascii().is_empty())
            .map(Bytes::copy_from_slice)
            .collect();
        prop_assert_eq!(decode(200, &chunks), (naive, Ok(())));
    }
}
