//! Any stream: the same lines as the naive splitter, whatever the chunks.
//!
//! The first bytes of the input choose the limit and the chunks, the rest is the stream.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use toolgate_mcp::LineDecoder;

fuzz_target!(|input: &[u8]| {
    let Some((&[max, size], stream)) = input.split_first_chunk() else { return };
    let max = usize::from(max);
    let (mut lines, mut failed) = (Vec::new(), false);
    let mut decoder = LineDecoder::new(max);
    for chunk in stream.chunks(usize::from(size).max(1)) {
        failed |= decoder.push(chunk, &mut |line| lines.push(line)).is_err();
    }
    lines.extend(decoder.finish());
    let naive = stream.split(|byte| *byte == b'\n');
    let naive = naive.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let fitting: Vec<Bytes> = naive
        .clone()
        .take_while(|line| line.len() <= max)
        .filter(|line| !line.trim_ascii().is_empty())
        .map(Bytes::copy_from_slice)
        .collect();
    assert_eq!(lines, fitting);
    assert_eq!(failed, naive.clone().any(|line| line.len() > max));
});
