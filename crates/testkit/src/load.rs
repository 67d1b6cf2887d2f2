//! A load generator for streamable HTTP: C clients, each with one keep-alive connection and one
//! request in flight, and every answer checked.
//!
//! [`run`] does everything: connect, `initialize`, warm up, measure, `DELETE` the sessions.
//! `request` makes the requests and checks the answers, `client` is the connection, `report` the
//! figures.
//!
//! Invariant: the clock of a request stops with its last received byte; checking follows.
//! Invariant: a wrong answer is an error in the report, never a sample.

mod client;
mod report;
mod request;
#[cfg(test)]
mod tests;

pub use self::report::LoadReport;
pub use self::request::LoadRequest;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use http::Uri;
use tokio::task::JoinSet;

use self::client::Client;
use self::request::Asker;

/// What to send, from how many clients and for how long.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// The MCP endpoint, `http://host:port/path`.
    pub url: Uri,
    /// The request to repeat.
    pub ask: LoadRequest,
    /// The bearer token of every request, if any.
    pub token: Option<String>,
    /// The prefix of tool names there.
    pub prefix: String,
    /// The number of clients, each with its own connection and session.
    pub clients: usize,
    /// When each client stops.
    pub length: LoadLength,
}

/// When each client stops, and its unmeasured warm-up.
#[derive(Debug, Clone, Copy)]
pub enum LoadLength {
    /// Measures for `measured` after `warm_up`.
    Time {
        /// Unmeasured time at the start.
        warm_up: Duration,
        /// Measured time.
        measured: Duration,
    },
    /// Measures `measured` requests of each client after `warm_up` ones.
    Count {
        /// Unmeasured requests at the start.
        warm_up: u64,
        /// Measured requests.
        measured: u64,
    },
}

/// Runs a plan. Fails only if a client cannot connect and initialize; later errors are counted in
/// the report.
pub async fn run(plan: &LoadPlan) -> Result<LoadReport> {
    let mut clients = Vec::with_capacity(plan.clients);
    for number in 0..plan.clients {
        let client = Client::connect(&plan.url, plan.token.as_deref()).await;
        clients.push(client.with_context(|| format!("client {number} at `{}`", plan.url))?);
    }
    let asker = Arc::new(Asker::new(plan.ask, &plan.prefix));
    let started = Instant::now();
    let mut running = JoinSet::new();
    for (number, client) in clients.into_iter().enumerate() {
        let asker = Arc::clone(&asker);
        running.spawn(drive(client, number, asker, plan.length, started));
    }
    let mut outcomes = Vec::with_capacity(plan.clients);
    while let Some(outcome) = running.join_next().await {
        outcomes.push(outcome.map_err(|failed| anyhow!("a client task failed: {failed}"))?);
    }
    Ok(LoadReport::new(plan, outcomes))
}

/// The measurements of one client.
#[derive(Debug, Default)]
struct Outcome {
    samples: Vec<Duration>,
    /// Right answers, measured or not.
    answers: u64,
    /// The first and the last measured instant.
    span: Option<(Instant, Instant)>,
    errors: u64,
    first_error: Option<String>,
}

impl Outcome {
    fn error(&mut self, error: &anyhow::Error) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| format!("{error:#}"));
    }

    fn sample(&mut self, from: Instant, to: Instant) {
        self.samples.push(to - from);
        self.span = Some((self.span.map_or(from, |(first, _)| first), to));
    }
}

async fn drive(
    mut client: Client,
    number: usize,
    asker: Arc<Asker>,
    length: LoadLength,
    started: Instant,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut done = 0;
    while !length.is_over(started, done) {
        let request = asker.request(number, done);
        let exchanged = async {
            client.ready().await?;
            let from = Instant::now();
            let received = client.post(request.body.clone()).await?;
            anyhow::Ok((from, Instant::now(), received))
        };
        let (from, to, received) = match exchanged.await {
            Ok(exchange) => exchange,
            // The connection is lost, so this client ends.
            Err(broken) => {
                outcome.error(&broken);
                return outcome;
            }
        };
        if let Err(wrong) = asker.check(&request, &received) {
            outcome.error(&wrong);
        } else {
            outcome.answers += 1;
            if length.measures(started, done, from, to) {
                outcome.sample(from, to);
            }
        }
        done += 1;
    }
    if let Err(error) = client.close().await {
        outcome.error(&error);
    }
    outcome
}

impl LoadLength {
    /// Whether a client with `done` requests stops.
    fn is_over(self, started: Instant, done: u64) -> bool {
        match self {
            Self::Time { warm_up, measured } => started.elapsed() >= warm_up + measured,
            Self::Count { warm_up, measured } => done >= warm_up + measured,
        }
    }

    /// Whether request number `done` is measured, having taken from `from` to `to`.
    fn measures(self, started: Instant, done: u64, from: Instant, to: Instant) -> bool {
        match self {
            Self::Time { warm_up, measured } => {
                let begin = started + warm_up;
                from >= begin && to <= begin + measured
            }
            Self::Count { warm_up, .. } => done >= warm_up,
        }
    }
}
