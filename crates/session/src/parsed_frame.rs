//! Frames that were read: all work that grows with their length is done before the machine, which
//! has one lock around it, is told of them.
//!
//! Invariant: reading a frame needs no machine, and changes nothing but what the pool shares.
//!
//! Start at [`FrameParser::read`].

use crate::frame::Frame;
use crate::pool::{Pool, ReadTools};
use crate::registration::{Registration, changed_tools};
use crate::tool_result::{ToolResult, from_error, from_result};

/// Reads frames for one machine; clones read for the same.
#[derive(Debug, Clone)]
pub struct FrameParser {
    pub(crate) pool: Pool,
    /// How many tools one session may publish.
    pub(crate) max_tools: usize,
}

/// What a frame says, or why it cannot be read.
#[derive(Debug)]
pub struct ParsedFrame<'a>(pub(crate) Result<ClientMessage<'a>, String>);

/// What a client says. Ids are raw.
#[derive(Debug)]
pub(crate) enum ClientMessage<'a> {
    /// The answer to a call.
    Answer { id: &'a str, result: ToolResult },
    /// A session wants to begin.
    Register { id: &'a str, read: Result<Registration, String> },
    /// It has other tools.
    ToolsChanged { id: Option<&'a str>, read: Result<ReadTools, String> },
    /// It says goodbye.
    Bye { id: Option<&'a str> },
    /// It wants a sign of life.
    Ping { id: &'a str },
    /// A request that there is not.
    Unknown { id: &'a str },
    /// A notification that means nothing.
    Nothing,
}

impl FrameParser {
    /// Reads a frame.
    pub fn read<'a>(&self, text: &'a str) -> ParsedFrame<'a> {
        ParsedFrame(Frame::parse(text).map(|frame| self.said(frame)))
    }

    fn said<'a>(&self, frame: Frame<'a>) -> ClientMessage<'a> {
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
