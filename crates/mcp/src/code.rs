//! Error codes of JSON-RPC and of the protocol on top of it.

/// The body is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The JSON is not a message.
pub const INVALID_REQUEST: i32 = -32600;
/// The method does not exist.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// Invalid params; since 2026-07-28 also: the resource does not exist.
pub const INVALID_PARAMS: i32 = -32602;
/// The receiver of the request failed.
pub const INTERNAL_ERROR: i32 = -32603;
/// The resource does not exist; up to 2025-11-25.
pub const RESOURCE_NOT_FOUND: i32 = -32002;
/// The user must first open a URL; 2025-11-25 only.
pub const URL_ELICITATION_REQUIRED: i32 = -32042;
/// Headers and body disagree, or a header is missing; since 2026-07-28.
pub const HEADER_MISMATCH: i32 = -32020;
/// The request needs a capability that the client did not declare; since 2026-07-28.
pub const MISSING_CAPABILITY: i32 = -32021;
/// The protocol version of the request is not supported; since 2026-07-28.
pub const UNSUPPORTED_VERSION: i32 = -32022;
