//! Error codes of JSON-RPC and of the protocol on top of it.

/// The body is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The JSON is not a message.
pub const INVALID_REQUEST: i32 = -32600;
/// Nobody serves this method.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The method cannot take these params; since 2026-07-28 also: no such resource.
pub const INVALID_PARAMS: i32 = -32602;
/// Whoever answers has failed, not whoever asked.
pub const INTERNAL_ERROR: i32 = -32603;
/// No such resource, up to 2025-11-25.
pub const RESOURCE_NOT_FOUND: i32 = -32002;
/// The person must first open a URL; 2025-11-25 only.
pub const URL_ELICITATION_REQUIRED: i32 = -32042;
/// Headers and body disagree, or a header is missing; since 2026-07-28.
pub const HEADER_MISMATCH: i32 = -32020;
/// The request needs something that the client did not say it can do; since 2026-07-28.
pub const MISSING_CAPABILITY: i32 = -32021;
/// The protocol version of the request is not spoken here; since 2026-07-28.
pub const UNSUPPORTED_VERSION: i32 = -32022;
