//! The caller: an agent session as far as decisions and the record are concerned.

use std::sync::Arc;

use crate::access::Grant;
use crate::admit::{Admission, Sender};

/// One agent session, which sends requests on behalf of a grant.
pub trait Caller: Send + Sync {
    /// Its number, which no other agent session of the process has.
    fn key(&self) -> u64;

    /// The grant, as last looked up.
    fn grant(&self) -> Arc<Grant>;

    /// Who sends its requests, for decisions and for the record.
    fn sender(&self) -> Sender;

    /// What decides its requests.
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
