//! The work of one request.

use std::pin::Pin;

/// When it completes, all messages of the request are in its event buffer.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;
