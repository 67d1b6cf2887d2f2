//! Replies of the store: the path from the writer or a reader back to the caller.

use futures_channel::oneshot;
use futures_util::future::BoxFuture;

use crate::StoreError;

/// Sends the reply to one request.
pub(crate) type Sender<T, E> = oneshot::Sender<Result<T, E>>;

/// The future of a reply. A dropped sender means that the store is closed.
pub(crate) fn receive<T: Send + 'static, E: Send + 'static>(
    answered: oneshot::Receiver<Result<T, E>>,
    refuse: fn(StoreError) -> E,
) -> BoxFuture<'static, Result<T, E>> {
    Box::pin(async move { answered.await.unwrap_or_else(|_| Err(refuse(StoreError::closed()))) })
}
