//! Checks arguments of servers with `validate: true`, by the workers of session schemas.

use std::sync::Arc;

use toolgate_upstream::arguments::{ArgumentCheck, ArgumentsToCheck, InvalidArguments};
use toolgate_upstream::channel::BoxFuture;

use crate::dial_in::schema::Schemas;

/// The check of all servers.
#[derive(Default)]
pub(super) struct ServerArguments(Arc<Schemas>);

impl ArgumentCheck for ServerArguments {
    fn check(&self, call: ArgumentsToCheck) -> BoxFuture<'static, Result<(), InvalidArguments>> {
        let schemas = Arc::clone(&self.0);
        Box::pin(async move {
            let ArgumentsToCheck { grant, server, definition, arguments } = call;
            let Some(definition) = definition else {
                let why =
                    "the tool cannot be called, because its definition is too long to be checked";
                return Err(InvalidArguments(why.to_owned()));
            };
            schemas.check_definition(&grant, &server, definition, arguments).await
        })
    }
}
