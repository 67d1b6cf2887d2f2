//! The caller: what decisions and the audit need to know of an agent session.

use std::sync::Arc;

use crate::access::Grant;
use crate::admit::Admission;
use crate::call_context::Sender;

/// One agent session, which sends requests on behalf of a grant.
pub trait Caller: Send + Sync {
    /// Its number, unique within the process.
    fn key(&self) -> u64;

    /// The grant, as last looked up.
    fn grant(&self) -> Arc<Grant>;

    /// The sender of its requests, for decisions and for the audit.
    fn sender(&self) -> Sender;

    /// Decides its requests.
    fn admission(&self) -> &Arc<Admission>;
}

impl<T: Caller + ?Sized> Caller for Arc<T> {
    fn key(&self) -> u64 {
        (**self).key()
    }

    fn grant(&self) -> Arc<Grant> {
        (**self).grant()
    }

    fn sender(&self) -> Sender {
        (**self).sender()
    }

    fn admission(&self) -> &Arc<Admission> {
        (**self).admission()
    }
}
