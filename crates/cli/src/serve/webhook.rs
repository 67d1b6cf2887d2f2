//! Sends notices about pending approvals to the webhook, from the outbox in the store.
//!
//! Invariant: a notice is in the outbox until its receiver has accepted it or its approval has ended,
//! whatever happens to this process.
//! Invariant: at most [`PARALLEL`] notices are on their way.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;
use toolgate_config::{ApprovalsConfig, WebhookConfig};
use toolgate_control::{Control, notice};
use toolgate_edge::remote::Client;
use toolgate_edge::webhook::{Notice, post};
use toolgate_store::DueNotice;

/// The most notices on their way at once.
const PARALLEL: usize = 10;
/// The first and the longest time until a notice is sent again.
const FIRST: SignedDuration = SignedDuration::from_secs(1);
const LONGEST: SignedDuration = SignedDuration::from_mins(5);
/// How often the outbox is looked at.
const EVERY: Duration = Duration::from_millis(500);

/// Sends notices until it is dropped.
pub(crate) async fn run(control: Arc<Control>) {
    let client = Client::new();
    let mut under_way = JoinSet::new();
    let mut ids: HashSet<Arc<str>> = HashSet::new();
    // Their end is written a moment after they have ended; until the next look they are not due.
    let mut ended: Vec<Arc<str>> = Vec::new();
    let mut tick = tokio::time::interval(EVERY);
    loop {
        tokio::select! {
            Some(done) = under_way.join_next() => {
                ended.extend(done.ok());
                continue;
            }
            _ = tick.tick() => {}
        }
        let settings = control.approvals();
        if let Some(webhook) = &settings.webhook {
            for delivery in due(&control, &ids).await {
                if under_way.len() >= PARALLEL {
                    break;
                }
                ids.insert(Arc::clone(&delivery.approval.id));
                let (control, client) = (Arc::clone(&control), client.clone());
                let (settings, webhook) = (Arc::clone(&settings), webhook.clone());
                under_way.spawn(async move {
                    let id = Arc::clone(&delivery.approval.id);
                    deliver(&control, &client, &settings, &webhook, delivery).await;
                    id
                });
            }
        }
        for id in ended.drain(..) {
            ids.remove(&id);
        }
    }
}

/// The notices that are due and not on their way.
async fn due(control: &Control, under_way: &HashSet<Arc<str>>) -> Vec<DueNotice> {
    let most = PARALLEL + under_way.len();
    match control.store().due_deliveries(Timestamp::now(), most).await {
        Ok(due) => due.into_iter().filter(|one| !under_way.contains(&one.approval.id)).collect(),
        Err(error) => {
            tracing::warn!(%error, "the outbox of the webhook cannot be read");
            Vec::new()
        }
    }
}

async fn deliver(
    control: &Control,
    client: &Client,
    settings: &ApprovalsConfig,
    webhook: &WebhookConfig,
    delivery: DueNotice,
) {
    let DueNotice { approval, attempts } = delivery;
    let page = control.gateway().admission().holds().page(&approval.id);
    let chat = settings.chat_id.as_deref();
    let body = notice::body(&approval, &page, settings.format, chat);
    let now = Timestamp::now();
    let sent = post(
        client,
        Notice {
            url: webhook.url.expose(),
            secret: webhook.secret.as_ref().map(toolgate_config::Secret::expose),
            time: now.as_second(),
            delivery: &approval.id,
            body: &body,
        },
    );
    let next = match sent.await {
        Ok(()) => None,
        Err(why) => {
            let attempts = attempts.saturating_add(1);
            let wait = wait(attempts);
            tracing::warn!(approval = &*approval.id, attempts, %why, "notice not delivered; it is sent again");
            Some((attempts, Timestamp::now().checked_add(wait).unwrap_or(Timestamp::MAX)))
        }
    };
    control.store().note_delivery(approval.id, next);
}

/// The time until a notice is sent again after so many attempts.
fn wait(attempts: u32) -> SignedDuration {
    let doubled = FIRST.checked_mul(1 << attempts.saturating_sub(1).min(20));
    doubled.unwrap_or(LONGEST).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_double_up_to_five_minutes() {
        let waits = [1, 2, 3, 9, 10, 40].map(|attempts| wait(attempts).as_secs());
        assert_eq!(waits, [1, 2, 4, 256, 300, 300]);
    }
}
