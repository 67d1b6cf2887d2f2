//! Work: what a request comes down to.

use std::pin::Pin;

/// When it ends, everything is in the buffer of its request.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;
