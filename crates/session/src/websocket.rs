//! WebSocket framing (RFC 6455) for a server: bytes in, messages out, and frames to send.
//!
//! [`WebSocketReader::take`] receives bytes in pieces of any size and returns complete messages. It
//! buffers only the received part of an incomplete message, and nothing between two messages: a
//! thousand silent sockets hold no buffer, and the buffer of a large frame is freed with it.
//! [`encode`] is the reverse.
//!
//! Invariant: a length is checked before anything is buffered for it, over all fragments.
//! Invariant: after a [`WebSocketError`] nothing is buffered, and the socket must be closed. Tested
//! below against a naive encoder with all splits; fuzzed by `fuzz_targets/websocket.rs`.

#[cfg(test)]
mod tests;

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebSocketMessage {
    /// A text message.
    Text(String),
    /// The size of a binary message, which is discarded.
    Binary(usize),
    /// Must be answered with the same bytes.
    Ping(Vec<u8>),
    /// The peer is alive.
    Pong,
    /// The peer closes the connection.
    Close,
}

/// Why a connection must be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebSocketError {
    /// The peer violated RFC 6455.
    Protocol(&'static str),
    /// A text message is not valid UTF-8.
    NotUtf8,
    /// A message exceeds the limit.
    TooLarge,
}

/// The type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// Continues a message.
    Continuation,
    /// A text.
    Text,
    /// Bytes.
    Binary,
    /// The last frame.
    Close,
    /// Requests a pong.
    Ping,
    /// Answers a ping.
    Pong,
}

/// Assembles the messages of one connection.
#[derive(Debug)]
pub struct WebSocketReader {
    /// The maximum size of a message.
    most: usize,
    /// The received part of a frame header.
    head: [u8; LONGEST_HEAD],
    come: usize,
    frame: Option<Frame>,
    /// The received part of a message, and whether it is text.
    message: Vec<u8>,
    is_text: Option<bool>,
    /// The received part of a control frame, which may be between fragments of a message.
    control: Vec<u8>,
}

/// A frame whose header is complete.
#[derive(Debug, Clone, Copy)]
struct Frame {
    opcode: Opcode,
    last: bool,
    /// Rotated so that it starts with the next byte.
    mask: [u8; 4],
    left: usize,
}

const LONGEST_HEAD: usize = 14;
/// The maximum payload of a control frame.
const CONTROL: usize = 125;
/// The first allocation step.
const FIRST_STEP: usize = 1_024;

impl WebSocketReader {
    /// Creates a reader for messages of at most this size.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            head: [0; LONGEST_HEAD],
            come: 0,
            frame: None,
            message: Vec::new(),
            is_text: None,
            control: Vec::new(),
        }
    }

    /// The number of buffered bytes.
    pub fn held(&self) -> usize {
        self.message.capacity() + self.control.capacity()
    }

    /// Consumes bytes from the front of `bytes` until a message is complete or none are left.
    pub fn take(&mut self, bytes: &mut &[u8]) -> Result<Option<WebSocketMessage>, WebSocketError> {
        let taken = self.try_take(bytes);
        if taken.is_err() {
            *self = Self::new(self.most);
        }
        taken
    }

    fn try_take(&mut self, bytes: &mut &[u8]) -> Result<Option<WebSocketMessage>, WebSocketError> {
        loop {
            let frame = if let Some(frame) = self.frame {
                frame
            } else if self.read_head(bytes) {
                self.begin()?
            } else {
                return Ok(None);
            };
            let frame = self.read_payload(frame, bytes);
            if frame.left > 0 {
                self.frame = Some(frame);
                return Ok(None);
            }
            self.frame = None;
            self.come = 0;
            if let Some(taken) = self.end(frame)? {
                return Ok(Some(taken));
            }
        }
    }

    /// Whether the whole header has been received.
    fn read_head(&mut self, bytes: &mut &[u8]) -> bool {
        while self.come < self.head_length() {
            let Some((first, rest)) = bytes.split_first() else { return false };
            let Some(place) = self.head.get_mut(self.come) else { return false };
            *place = *first;
            *bytes = rest;
            self.come += 1;
        }
        true
    }

    /// The length of the header, as far as it is known.
    fn head_length(&self) -> usize {
        if self.come < 2 {
            return 2;
        }
        let [_, second, ..] = self.head;
        2 + extended_length(second) + if second & 0x80 == 0 { 0 } else { 4 }
    }

    /// Validates a complete header.
    fn begin(&self) -> Result<Frame, WebSocketError> {
        let [first, second, rest @ ..] = self.head;
        if first & 0x70 != 0 {
            return Err(WebSocketError::Protocol("reserved bits are set"));
        }
        if second & 0x80 == 0 {
            return Err(WebSocketError::Protocol("a frame of a client must be masked"));
        }
        let extended = extended_length(second);
        let length = match extended {
            0 => u64::from(second & 0x7f),
            _ => rest.iter().take(extended).fold(0, |sum, byte| (sum << 8) | u64::from(*byte)),
        };
        let mask = rest.get(extended..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        let opcode = Opcode::of(first & 0x0f).ok_or(WebSocketError::Protocol("unknown opcode"))?;
        let last = first & 0x80 != 0;
        let left = usize::try_from(length).map_err(|_| WebSocketError::TooLarge)?;
        self.judge(opcode, last, left)?;
        Ok(Frame { opcode, last, mask, left })
    }

    /// Whether such a frame is allowed now.
    fn judge(&self, opcode: Opcode, last: bool, left: usize) -> Result<(), WebSocketError> {
        if opcode.is_control() {
            let fits = last && left <= CONTROL;
            return if fits {
                Ok(())
            } else {
                Err(WebSocketError::Protocol("a control frame is too long"))
            };
        }
        match (opcode, self.is_text) {
            (Opcode::Continuation, None) => {
                return Err(WebSocketError::Protocol("no message to continue"));
            }
            (Opcode::Text | Opcode::Binary, Some(_)) => {
                return Err(WebSocketError::Protocol("the previous message is not complete"));
            }
            _ => {}
        }
        let whole = self.message.len().checked_add(left);
        if whole.is_some_and(|whole| whole <= self.most) {
            Ok(())
        } else {
            Err(WebSocketError::TooLarge)
        }
    }

    fn read_payload(&mut self, mut frame: Frame, bytes: &mut &[u8]) -> Frame {
        let Some((here, rest)) = bytes.split_at_checked(frame.left.min(bytes.len())) else {
            return frame;
        };
        *bytes = rest;
        let into = if frame.opcode.is_control() { &mut self.control } else { &mut self.message };
        let from = into.len();
        make_room(into, here.len(), frame.left);
        into.extend_from_slice(here);
        if let Some(new) = into.get_mut(from..) {
            unmask(new, frame.mask);
        }
        frame.left -= here.len();
        frame.mask.rotate_left(here.len() % 4);
        frame
    }

    /// The message that a complete frame ends, if any.
    fn end(&mut self, frame: Frame) -> Result<Option<WebSocketMessage>, WebSocketError> {
        match frame.opcode {
            Opcode::Text => self.is_text = Some(true),
            Opcode::Binary => self.is_text = Some(false),
            Opcode::Continuation => {}
            Opcode::Ping => {
                return Ok(Some(WebSocketMessage::Ping(std::mem::take(&mut self.control))));
            }
            Opcode::Pong => {
                self.control = Vec::new();
                return Ok(Some(WebSocketMessage::Pong));
            }
            Opcode::Close => {
                let reason = std::mem::take(&mut self.control);
                if reason.len() == 1 {
                    return Err(WebSocketError::Protocol("truncated close code"));
                }
                return Ok(Some(WebSocketMessage::Close));
            }
        }
        if !frame.last {
            return Ok(None);
        }
        let message = std::mem::take(&mut self.message);
        Ok(Some(match self.is_text.take() {
            Some(true) => WebSocketMessage::Text(
                String::from_utf8(message).map_err(|_| WebSocketError::NotUtf8)?,
            ),
            _ => WebSocketMessage::Binary(message.len()),
        }))
    }
}

/// The number of header bytes with the length, besides the second.
fn extended_length(second: u8) -> usize {
    match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    }
}

impl Opcode {
    fn of(bits: u8) -> Option<Self> {
        let all =
            [Self::Continuation, Self::Text, Self::Binary, Self::Close, Self::Ping, Self::Pong];
        all.into_iter().find(|opcode| opcode.bits() == bits)
    }

    fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    fn is_control(self) -> bool {
        self.bits() >= 8
    }
}

/// One complete frame, as a server sends it.
pub fn encode(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(payload.len() + 10);
    frame.push(0x80 | opcode.bits());
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(short), _) if short < 126 => frame.push(short),
        (_, Ok(middle)) => {
            frame.push(126);
            frame.extend(middle.to_be_bytes());
        }
        _ => {
            frame.push(127);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

/// A close frame.
pub fn encode_close(code: u16, reason: &str) -> Vec<u8> {
    let mut payload = code.to_be_bytes().to_vec();
    payload.extend(reason.bytes().take(CONTROL - 2));
    encode(Opcode::Close, &payload)
}

/// Grows in large steps, but never beyond the announced size and never far ahead of the received
/// bytes.
fn make_room(into: &mut Vec<u8>, more: usize, announced: usize) {
    if into.capacity() - into.len() < more {
        let step = into.capacity().max(FIRST_STEP).min(announced);
        into.reserve_exact(step.max(more));
    }
}

fn unmask(bytes: &mut [u8], mask: [u8; 4]) {
    let mut words = bytes.chunks_exact_mut(4);
    for word in &mut words {
        for (byte, key) in word.iter_mut().zip(mask) {
            *byte ^= key;
        }
    }
    for (byte, key) in words.into_remainder().iter_mut().zip(mask) {
        *byte ^= key;
    }
}
