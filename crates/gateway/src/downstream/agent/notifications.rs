//! Forwards notifications of an agent to the servers that they concern.

use std::sync::Arc;

use bytes::Bytes;
use toolgate_admission::clearance::Closed;
use toolgate_json::{peek, quote};
use toolgate_mcp::{Notification, Refusal, method};
use toolgate_upstream::link::Link;
use toolgate_upstream::rewrite::rewrite;
use toolgate_upstream::tasks;

use super::AgentSession;
use crate::downstream::size_limits::TooLong;

impl AgentSession {
    /// Forwards a notification of the agent.
    pub async fn notify(&self, notification: &Notification<'_>) -> Result<(), Refusal> {
        self.touch();
        let name = notification.method.as_ref();
        if let Some(long) = TooLong::of_message(name, notification.params) {
            let (grant, via) = (self.grant(), Arc::clone(&self.sender.via));
            long.record(&self.admission, &grant, &via, name).await;
            return Err(long.refusal(None));
        }
        if let Some(closed) = Closed::notification(name) {
            self.pass_on_notification(notification, closed).await;
        }
        Ok(())
    }

    async fn pass_on_notification(&self, notification: &Notification<'_>, closed: Closed) {
        let part =
            |key: &str| notification.params.and_then(|params| peek(params, &[key]).ok().flatten());
        if notification.method == method::CANCELLED {
            return self.cancel(notification, part("requestId"), closed).await;
        }
        if notification.method == method::PROGRESS {
            let asked =
                part("progressToken").and_then(|token| Some((token, self.token_of(token)?)));
            if let Some((token, (link, theirs))) = asked
                && let Ok(body) = rewrite(notification.raw, &[(token, &theirs)])
            {
                self.pass_on(link, body, closed).await;
            }
            return;
        }
        let all = !self.endpoint.is_one();
        // On `/mcp` toolgate itself makes the handshake with each server.
        if all && notification.method != method::ROOTS_LIST_CHANGED {
            return;
        }
        for link in self.links().iter() {
            let params = notification.params.unwrap_or("{}");
            let task = tasks::related_if_known(self, link.server().name(), params);
            let task = task.map(|(part, own)| (part, quote(&own)));
            let task: Vec<_> = task.iter().map(|(part, own)| (*part, own.as_str())).collect();
            // One agent must not change the state of a server for others.
            if !link.is_shared()
                && (!all || link.is_up())
                && let Ok(body) = rewrite(notification.raw, &task)
            {
                self.pass_on(Arc::clone(link), body, closed).await;
            }
        }
    }

    /// Forwards the cancellation of the agent's request `id`.
    async fn cancel(&self, notification: &Notification<'_>, id: Option<&str>, closed: Closed) {
        let Some(id) = id else { return };
        self.running.cancel(id);
        for link in self.all_links() {
            if let Some(number) = link.withdraw(self.key, id)
                && let Ok(body) = rewrite(notification.raw, &[(id, &number.to_string())])
            {
                self.pass_on(link, body, closed).await;
            }
        }
    }

    /// Delivers before the agent's next message is read, even if the agent disconnects meanwhile.
    pub(super) async fn pass_on(&self, link: Arc<Link>, body: Bytes, closed: Closed) {
        let delivered =
            self.tasks.spawn(async move { link.forward_cleared(body, closed).await }).await;
        if delivered.is_err() {
            tracing::debug!(endpoint = %self.endpoint, "message not forwarded");
        }
    }
}
