//! Parses frames outside the machine: all work proportional to their length happens before the lock
//! of the machine is taken.
//!
//! Invariant: parsing needs no machine and changes nothing but the shared pool.
//!
//! Start at [`FrameParser::read`].

use crate::error::{FrameError, ParamsError};
use crate::frame::Frame;
use crate::pool::{Pool, ReadTools};
use crate::registration::{Registration, changed_tools};
use crate::tool_result::{ToolResult, from_error, from_result};

/// Parses frames for one machine; clones share its pool.
#[derive(Debug, Clone)]
pub struct FrameParser {
    pub(crate) pool: Pool,
    /// The maximum number of tools of one session.
    pub(crate) max_tools: usize,
}

/// The content of a frame, or why it cannot be parsed.
#[derive(Debug)]
pub struct ParsedFrame<'a>(pub(crate) Result<ClientMessage<'a>, FrameError>);

/// A message of a client. Ids are raw.
#[derive(Debug)]
pub(crate) enum ClientMessage<'a> {
    /// The answer to a call.
    Answer { id: &'a str, result: ToolResult },
    /// `session.register`.
    Register { id: &'a str, read: Result<Registration, ParamsError> },
    /// `session.tools_changed`.
    ToolsChanged { id: Option<&'a str>, read: Result<ReadTools, ParamsError> },
    /// `session.bye`.
    Bye { id: Option<&'a str> },
    /// `ping`.
    Ping { id: &'a str },
    /// A request with an unknown method.
    Unknown { id: &'a str },
    /// A notification that is ignored.
    Nothing,
}

impl FrameParser {
    /// Parses a frame.
    pub fn read<'a>(&self, text: &'a str) -> ParsedFrame<'a> {
        ParsedFrame(Frame::parse(text).map(|frame| self.message(frame)))
    }

    fn message<'a>(&self, frame: Frame<'a>) -> ClientMessage<'a> {
        let (id, method, params) = match frame {
            Frame::Response { id, payload } => {
                let result = match payload {
                    Ok(result) => from_result(result),
                    Err(error) => from_error(error),
                };
                return ClientMessage::Answer { id, result };
            }
            Frame::Request { id, method, params } => (Some(id), method, params),
            Frame::Notification { method, params } => (None, method, params),
        };
        match (&*method, id) {
            ("session.register", Some(id)) => ClientMessage::Register {
                id,
                read: Registration::read(params, &self.pool, self.max_tools),
            },
            ("session.tools_changed", id) => ClientMessage::ToolsChanged {
                id,
                read: changed_tools(params, &self.pool, self.max_tools),
            },
            ("session.bye", id) => ClientMessage::Bye { id },
            ("ping", Some(id)) => ClientMessage::Ping { id },
            (_, Some(id)) => ClientMessage::Unknown { id },
            (_, None) => ClientMessage::Nothing,
        }
    }
}
