//! Server-sent events: decoder and encoder.
//!
//! Invariant: an event with only an id or only a retry time is delivered: it prepares the client to
//! reconnect (2025-11-25). Bytes of `data` are copied once, out of the chunk.
//! Tested by `sse/tests.rs` and `fuzz/fuzz_targets/sse.rs`.

mod encode;

use bytes::Bytes;
use memchr::{memchr, memchr2};

pub use self::encode::{comment, event, prime, retry};
use crate::limits::TooLarge;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// The `id` field of this event; empty if the server resets the last event id.
    pub id: Option<String>,
    /// The `event` field.
    pub event: Option<String>,
    /// The lines of `data`, joined by line feeds; empty if there were none.
    pub data: Bytes,
    /// The `retry` field, in milliseconds.
    pub retry: Option<u64>,
}

/// Splits a stream of chunks into events.
#[derive(Debug)]
pub struct Decoder {
    max: usize,
    /// How many bytes of a byte order mark were read; 3 once that is decided.
    mark: usize,
    /// The last chunk ended with CR, so that an LF would belong to it.
    cr: bool,
    state: State,
    /// The line so far, if it is not `data`; of a comment only the beginning.
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    event: Event,
    broken: bool,
}

/// Which line is being read.
#[derive(Debug, Clone, Copy)]
enum State {
    /// Any field, or not known yet.
    Field,
    /// The value of `data`, which is appended at once. `fresh`: a leading space may follow, which is
    /// not part of the value.
    Data { fresh: bool },
}

const MARK: &[u8] = b"\xef\xbb\xbf";
const DATA: &[u8] = b"data:";

impl Decoder {
    /// An event may have `max_event_bytes` in all its fields.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            max: max_event_bytes,
            mark: 0,
            cr: false,
            state: State::Field,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            event: Event::default(),
            broken: false,
        }
    }

    /// Passes every event that this chunk completes to `each`. An incomplete event at the end of the
    /// stream is dropped. After an error every further chunk is an error.
    pub fn push(&mut self, chunk: &[u8], each: &mut dyn FnMut(Event)) -> Result<(), TooLarge> {
        let mut rest = self.skip_mark(chunk)?;
        loop {
            if self.cr && !rest.is_empty() {
                self.cr = false;
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            let end = memchr2(b'\n', b'\r', rest);
            let Some((line, after)) = end.and_then(|end| rest.split_at_checked(end)) else {
                return self.feed(rest);
            };
            self.feed(line)?;
            self.end_line(each);
            self.cr = after.starts_with(b"\r");
            rest = after.get(1..).unwrap_or_default();
        }
    }

    /// The chunk without a byte order mark at the start of the stream.
    fn skip_mark<'c>(&mut self, chunk: &'c [u8]) -> Result<&'c [u8], TooLarge> {
        let mut rest = chunk;
        while let (Some(expected), Some((byte, after))) = (MARK.get(self.mark), rest.split_first())
        {
            if byte == expected {
                self.mark += 1;
                rest = after;
            } else {
                let seen = MARK.get(..self.mark).unwrap_or_default();
                self.mark = MARK.len();
                self.feed(seen)?;
            }
        }
        Ok(rest)
    }

    /// Adds to the current line.
    fn feed(&mut self, more: &[u8]) -> Result<(), TooLarge> {
        let mut more = more;
        if let State::Field = self.state {
            // Enough to recognise `data`.
            let head = DATA.len().saturating_sub(self.line.len()).min(more.len());
            let (head, rest) = more.split_at_checked(head).unwrap_or((more, &[]));
            self.line.extend_from_slice(head);
            more = rest;
            if self.line == DATA {
                self.line.clear();
                self.begin_data();
                self.state = State::Data { fresh: true };
            } else if self.line.starts_with(b":") {
                more = &[];
            }
        }
        if let State::Data { fresh: true } = self.state
            && !more.is_empty()
        {
            more = more.strip_prefix(b" ").unwrap_or(more);
            self.state = State::Data { fresh: false };
        }
        self.reserve(more.len())?;
        match self.state {
            State::Field => self.line.extend_from_slice(more),
            State::Data { .. } => self.data.extend_from_slice(more),
        }
        Ok(())
    }

    fn end_line(&mut self, each: &mut dyn FnMut(Event)) {
        if let State::Data { .. } = std::mem::replace(&mut self.state, State::Field) {
            return;
        }
        if self.line.is_empty() {
            return self.end_event(each);
        }
        let mut line = std::mem::take(&mut self.line);
        self.field(&line);
        line.clear();
        self.line = line;
    }

    fn field(&mut self, line: &[u8]) {
        let colon = memchr(b':', line).unwrap_or(line.len());
        let (name, value) = line.split_at_checked(colon).unwrap_or_default();
        let value = value.strip_prefix(b":").unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => self.begin_data(),
            b"id" if !value.contains(&0) => self.event.id = Some(lossy(value)),
            b"event" => self.event.event = Some(lossy(value)),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.event.retry = lossy(value).parse().ok().or(self.event.retry);
            }
            _ => {}
        }
    }

    fn begin_data(&mut self) {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
    }

    fn end_event(&mut self, each: &mut dyn FnMut(Event)) {
        let mut event = std::mem::take(&mut self.event);
        event.data = Bytes::from(std::mem::take(&mut self.data));
        let has_data = std::mem::take(&mut self.has_data);
        if has_data || event.id.is_some() || event.retry.is_some() {
            each(event);
        }
    }

    /// Checks that the unfinished event may grow by this many bytes.
    fn reserve(&mut self, more: usize) -> Result<(), TooLarge> {
        let fields = [&self.event.id, &self.event.event];
        let fields: usize = fields.into_iter().flatten().map(String::len).sum();
        // Without the head of a line: chunk boundaries must not matter while it may be `data`.
        let line = self.line.len().saturating_sub(DATA.len());
        if self.broken || self.data.len() + line + fields + more > self.max {
            *self = Self { broken: true, ..Self::new(self.max) };
            return Err(TooLarge { max: self.max });
        }
        Ok(())
    }
}

fn lossy(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests;
