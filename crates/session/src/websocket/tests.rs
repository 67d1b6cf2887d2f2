//! A naive encoder of client frames; everything it encodes must be decoded.

use toolgate_dice::Dice;

use super::*;

const MOST: usize = 1_000;

/// A frame as a client sends it, encoded byte by byte according to the RFC.
fn frame(first: u8, payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        short @ 0..=125 => bytes.push(0x80 | u8::try_from(short).unwrap()),
        middle @ 126..=0xffff => {
            bytes.push(0x80 | 0x7e);
            bytes.extend(u16::try_from(middle).unwrap().to_be_bytes());
        }
        long => {
            bytes.push(0x80 | 0x7f);
            bytes.extend(u64::try_from(long).unwrap().to_be_bytes());
        }
    }
    bytes.extend(mask);
    bytes.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
    bytes
}

/// Decodes bytes that arrive in pieces of these lengths; the last length repeats.
fn decode(
    reader: &mut WebSocketReader,
    bytes: &[u8],
    mut piece: impl FnMut() -> usize,
) -> Result<Vec<WebSocketMessage>, WebSocketError> {
    let (mut messages, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let (mut here, later) = rest.split_at(piece().clamp(1, rest.len()));
        rest = later;
        while let Some(one) = reader.take(&mut here)? {
            messages.push(one);
        }
        assert!(here.is_empty());
    }
    Ok(messages)
}

#[test]
fn any_fragmentation_is_reassembled() {
    let texts = ["", "a", "Ёлка", &"слово ".repeat(90), &"x".repeat(126), &"y".repeat(999)];
    for seed in 0..2_000 {
        let mut rng = Dice::new(seed);
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for _ in 0..rng.below(5) {
            let text = rng.pick(&texts);
            let is_text = rng.chance(80);
            let mut rest = text.as_bytes();
            let mut first = if is_text { 1 } else { 2 };
            loop {
                let fragment = if rng.chance(50) { rest.len() } else { rng.below(rest.len() + 1) };
                let (here, later) = rest.split_at(fragment);
                let last = later.is_empty() && rng.chance(70);
                let mask = rng.roll().to_be_bytes();
                let mask = [mask[0], mask[1], mask[2], mask[3]];
                bytes.extend(frame(if last { 0x80 | first } else { first }, here, mask));
                (rest, first) = (later, 0);
                if last {
                    break;
                }
                if rng.chance(30) {
                    bytes.extend(frame(0x89, b"there?", mask));
                    expected.push(WebSocketMessage::Ping(b"there?".to_vec()));
                }
            }
            expected.push(if is_text {
                WebSocketMessage::Text(text.to_owned())
            } else {
                WebSocketMessage::Binary(text.len())
            });
        }
        bytes.extend(frame(0x8a, b"", [0; 4]));
        bytes.extend(frame(0x88, &[3, 232], [1, 2, 3, 4]));
        expected.extend([WebSocketMessage::Pong, WebSocketMessage::Close]);
        let mut reader = WebSocketReader::new(MOST);
        let messages = decode(&mut reader, &bytes, || rng.below(40));
        assert_eq!(messages, Ok(expected), "seed {seed}");
        assert_eq!(reader.held(), 0, "seed {seed}: nothing is kept between messages");
    }
}

#[test]
fn protocol_violations_are_rejected_and_buffers_freed() {
    let mask = [7; 4];
    let two = |first: Vec<u8>, second: Vec<u8>| [first, second].concat();
    let half = frame(0x01, &[b'x'; 600], mask);
    let cases = [
        (vec![0x81, 0x01, b'x'], WebSocketError::Protocol("a frame of a client must be masked")),
        (frame(0xc1, b"x", mask), WebSocketError::Protocol("reserved bits are set")),
        (frame(0x83, b"x", mask), WebSocketError::Protocol("unknown opcode")),
        (frame(0x8b, b"x", mask), WebSocketError::Protocol("unknown opcode")),
        (frame(0x09, b"x", mask), WebSocketError::Protocol("a control frame is too long")),
        (frame(0x89, &[0; 126], mask), WebSocketError::Protocol("a control frame is too long")),
        (frame(0x80, b"x", mask), WebSocketError::Protocol("no message to continue")),
        (
            two(half.clone(), frame(0x81, b"", mask)),
            WebSocketError::Protocol("the previous message is not complete"),
        ),
        (frame(0x88, &[3], mask), WebSocketError::Protocol("truncated close code")),
        (frame(0x81, &[0xff], mask), WebSocketError::NotUtf8),
        (frame(0x81, &[b'x'; MOST + 1], mask), WebSocketError::TooLarge),
        (two(half, frame(0x80, &[b'x'; 401], mask)), WebSocketError::TooLarge),
        ([&[0x81, 0xff][..], &[0xff; 8], &mask].concat(), WebSocketError::TooLarge),
    ];
    for (bytes, fault) in cases {
        let mut reader = WebSocketReader::new(MOST);
        assert_eq!(decode(&mut reader, &bytes, || 3), Err(fault));
        assert_eq!(reader.held(), 0, "{fault:?}");
    }
    let exact = decode(&mut WebSocketReader::new(MOST), &frame(0x81, &[b'x'; MOST], mask), || 100);
    assert_eq!(exact, Ok(vec![WebSocketMessage::Text("x".repeat(MOST))]));
}

#[test]
fn no_buffer_grows_beyond_received_bytes() {
    let mut reader = WebSocketReader::new(1 << 24);
    let whole = frame(0x81, &vec![b'x'; 1 << 24], [1, 2, 3, 4]);
    let mut come = 0;
    for piece in whole.chunks(8_192) {
        let mut here = piece;
        come += piece.len();
        if reader.take(&mut here).unwrap().is_some() {
            assert_eq!((come, reader.held()), (whole.len(), 0));
            return;
        }
        assert!(
            reader.held() <= 2 * come + FIRST_STEP && reader.held() <= 1 << 24,
            "{}",
            reader.held()
        );
    }
    panic!("it never came to an end");
}

#[test]
fn our_own_frames() {
    for (length, head) in [
        (0, &[0x81, 0][..]),
        (125, &[0x81, 125]),
        (126, &[0x81, 126, 0, 126]),
        (65_535, &[0x81, 126, 255, 255]),
        (65_536, &[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
    ] {
        let payload = vec![b'x'; length];
        assert_eq!(encode(Opcode::Text, &payload), [head, &payload].concat());
    }
    assert_eq!(encode_close(4001, "superseded"), b"\x88\x0c\x0f\xa1superseded");
    assert_eq!(encode(Opcode::Pong, b"?"), [0x8a, 1, b'?']);
}
