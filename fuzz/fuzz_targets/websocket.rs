//! Any bytes in any pieces (the first byte says how long they are): no panic, nothing is held beyond
//! what has come, and the pieces do not matter.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate_session::{WebSocketError, WebSocketMessage, WebSocketReader};

const MOST: usize = 4_096;

fuzz_target!(|input: &[u8]| {
    let Some((piece, bytes)) = input.split_first() else { return };
    let at_once = hear(bytes, bytes.len());
    assert_eq!(at_once, hear(bytes, usize::from(*piece)));
});

fn hear(bytes: &[u8], piece: usize) -> (Vec<WebSocketMessage>, Option<WebSocketError>) {
    let mut ear = WebSocketReader::new(MOST);
    let (mut heard, mut come) = (Vec::new(), 0);
    for mut here in bytes.chunks(piece.max(1)) {
        come += here.len();
        loop {
            match ear.take(&mut here) {
                Ok(Some(one)) => heard.push(one),
                Ok(None) => break,
                Err(fault) => return (heard, Some(fault)),
            }
        }
        assert!(here.is_empty() && ear.held() <= 2 * come + 2_048);
    }
    (heard, None)
}
