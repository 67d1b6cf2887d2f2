//! A storm: many agents that all number their requests 0, 1, 2… over few shared links, answers in
//! any order, cancels, hang-ups, strays and broken channels. Every message carries a mark of the
//! request that it belongs to, and not one may turn up anywhere else.
//!
//! `TOOLGATE_SOAK=1` makes it a thousand agents and a million requests; `TOOLGATE_SEED` repeats a
//! run whose seed a failure has printed.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolgate_dice::Dice;
use toolgate_gateway::AgentSession;
use toolgate_gateway::event_buffer::{First, Next};
use toolgate_json::peek;
use toolgate_mcp::{Incoming, Limits, Message, Payload, parse_agent, parse_server};

use crate::harness::{Harness, INITIALIZE, shared};
use crate::script::{Kind, Line, Peer, Sent};

const SERVERS: [(&str, Kind); 3] =
    [("one", Kind::Child), ("two", Kind::Http), ("three", Kind::Child)];

#[derive(Clone, Copy)]
struct Storm {
    agents: u64,
    requests: u64,
    /// How many requests of one agent run at once.
    window: usize,
    /// Whether servers may leave what was cancelled without an answer. Only where the clock is
    /// paused, because such a call ends when its time is up.
    forgetful: bool,
    seed: u64,
}

/// How many requests ended how.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    answered: u64,
    failed: u64,
    silent: u64,
    progress: u64,
}

#[test]
fn not_one_answer_goes_astray() {
    let soak = std::env::var_os("TOOLGATE_SOAK").is_some();
    let (agents, requests) = if soak { (1_000, 1_000) } else { (200, 1_000) };
    let storm = Storm { agents, requests, window: 8, forgetful: true, seed: seed() };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    // Shown if the test fails.
    println!("TOOLGATE_SEED={}", storm.seed);
    let tally = runtime.unwrap().block_on(storm.run());
    println!("{tally:?}");
    assert!(tally.answered >= agents * requests * 5 / 6, "most are answered: {tally:?}");
    assert!(tally.progress > 0 && tally.silent > 0, "{tally:?}");
}

#[test]
fn not_one_answer_goes_astray_where_threads_race() {
    let storm = Storm { agents: 100, requests: 200, window: 8, forgetful: false, seed: seed() };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build();
    // Shown if the test fails.
    println!("TOOLGATE_SEED={}", storm.seed);
    let tally = runtime.unwrap().block_on(storm.run());
    println!("{tally:?}");
    assert!(tally.answered >= 100 * 200 * 5 / 6, "most are answered: {tally:?}");
}

fn seed() -> u64 {
    let given = std::env::var("TOOLGATE_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| RandomState::new().hash_one(0))
}

impl Storm {
    async fn run(self) -> Tally {
        let harness = Harness::new();
        let stop = CancellationToken::new();
        let (mut servers, mut playing) = (Vec::new(), JoinSet::new());
        for (index, (name, kind)) in SERVERS.into_iter().enumerate() {
            let peer = Peer::new(kind);
            servers.push(harness.server(shared(name), &peer));
            let dice = Dice::new(self.seed ^ index as u64);
            playing.spawn(serve(peer, dice, self.forgetful, stop.clone()));
        }
        harness.apply(servers);
        let mut agents = JoinSet::new();
        for (agent, (name, _)) in (0..self.agents).zip(SERVERS.iter().cycle()) {
            let session = harness.open(name, INITIALIZE).await.unwrap().session;
            agents.spawn(self.agent(agent, session));
        }
        let mut total = Tally::default();
        while let Some(tally) = agents.join_next().await {
            total.add(tally.unwrap());
        }
        stop.cancel();
        while let Some(played) = playing.join_next().await {
            played.unwrap();
        }
        total
    }

    /// One agent: all its requests, some at a time.
    async fn agent(self, agent: u64, session: Arc<AgentSession>) -> Tally {
        let mut dice = Dice::new(self.seed.wrapping_mul(31).wrapping_add(agent));
        let (mut running, mut tally) = (JoinSet::new(), Tally::default());
        for number in 0..self.requests {
            if running.len() == self.window {
                tally.add(running.join_next().await.unwrap().unwrap());
            }
            let fate = Fate { hangs_up: dice.one_in(20), cancels: dice.one_in(20) };
            running.spawn(request(Arc::clone(&session), agent, number, fate));
        }
        while let Some(one) = running.join_next().await {
            tally.add(one.unwrap());
        }
        // Nothing came that belonged to no request.
        let mut general = session.listen();
        tokio::select! {
            biased;
            next = general.next() => panic!("agent {agent} was told {next:?}"),
            () = std::future::ready(()) => {}
        }
        tally
    }
}

#[derive(Clone, Copy)]
struct Fate {
    hangs_up: bool,
    cancels: bool,
}

fn mark(agent: u64, number: u64) -> String {
    format!("\"{agent}/{number}\"")
}

/// One request, and everything that comes back for it.
async fn request(session: Arc<AgentSession>, agent: u64, number: u64, fate: Fate) -> Tally {
    let mark = mark(agent, number);
    let raw = format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"t","mark":{mark},"_meta":{{"progressToken":{number}}}}}}}"#
    );
    let parsed = parse_agent(raw.as_bytes(), &Limits::default()).unwrap();
    let Incoming::One(Message::Request(parsed)) = parsed else { panic!("{raw}") };
    let mut call = session.request(&parsed).unwrap();
    let mut tally = Tally::default();
    if fate.cancels {
        // Not sent yet, on its way, or on another thread even answered.
        if let Ok(First::Answer(body, _)) = timeout(Duration::ZERO, call.first()).await {
            tally.take(&body.into_bytes(), number, &mark);
            return tally;
        }
        cancel(&session, number, &mark).await;
    }
    if fate.hangs_up {
        tally.silent += 1;
        return tally;
    }
    match call.first().await {
        First::Answer(body, None) => tally.take(&body.into_bytes(), number, &mark),
        First::Answer(body, rejection) => panic!("{rejection:?}: {body:?}"),
        First::Stream => {
            let mut attached = session.stream(&call);
            drop(call);
            loop {
                match attached.next().await {
                    Next::Event(_, body) => tally.take(&body, number, &mark),
                    Next::End => break,
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    match tally.answered + tally.failed {
        1 => {}
        0 if fate.cancels => tally.silent += 1,
        answers => panic!("request {mark} had {answers} answers"),
    }
    tally
}

async fn cancel(session: &AgentSession, number: u64, mark: &str) {
    let raw = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number},"mark":{mark}}}}}"#
    );
    let parsed = parse_agent(raw.as_bytes(), &Limits::default()).unwrap();
    let Incoming::One(Message::Notification(parsed)) = parsed else { panic!("{raw}") };
    session.notify(&parsed).await.unwrap();
}

impl Tally {
    /// Takes in a message that came for the request, and makes sure that it is that request's.
    fn take(&mut self, body: &[u8], number: u64, mark: &str) {
        let number = number.to_string();
        let text = String::from_utf8_lossy(body);
        match parse_server(body, &Limits::default()).unwrap() {
            Incoming::One(Message::Response(response)) => {
                assert_eq!(response.id, Some(number.as_str()), "{mark} got {text}");
                let Payload::Result(result) = response.payload else { panic!("{text}") };
                if text.contains(r#""isError":true"#) {
                    self.failed += 1;
                } else {
                    assert_eq!(peek(result, &["mark"]).unwrap(), Some(mark), "{mark} got {text}");
                    self.answered += 1;
                }
            }
            Incoming::One(Message::Notification(notification)) => {
                let part = |key| peek(notification.params.unwrap(), &[key]).unwrap();
                assert_eq!(part("progressToken"), Some(number.as_str()), "{mark} got {text}");
                assert_eq!(part("mark"), Some(mark), "{mark} got {text}");
                self.progress += 1;
            }
            other => panic!("{mark} got {other:?}"),
        }
    }

    fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.failed += other.failed;
        self.silent += other.silent;
        self.progress += other.progress;
    }
}

/// Plays one server until it is stopped.
async fn serve(mut peer: Peer, mut dice: Dice, forgetful: bool, stop: CancellationToken) {
    let mut marks = HashMap::new();
    loop {
        let mut line = tokio::select! {
            line = peer.line() => line,
            () = stop.cancelled() => return,
        };
        let play = play(&mut line, &mut marks, &mut dice, forgetful);
        if stop.run_until_cancelled(play).await.is_none() {
            return;
        }
    }
}

/// Plays one channel until it breaks.
async fn play(
    line: &mut Line,
    marks: &mut HashMap<String, String>,
    dice: &mut Dice,
    forgetful: bool,
) {
    let mut pool: Vec<Sent> = Vec::new();
    loop {
        if pool.is_empty() {
            let sent = line.next().await;
            take_in(sent, &mut pool, marks, dice, forgetful);
        }
        while let Some(sent) = line.try_next() {
            take_in(sent, &mut pool, marks, dice, forgetful);
        }
        for _ in 0..dice.below(pool.len() + 1) {
            let sent = pool.swap_remove(dice.below(pool.len()));
            answer(&sent, dice);
        }
        if dice.one_in(2_000) {
            line.break_off("struck by lightning");
            // Its last words are nobody's any more.
            for sent in &pool {
                sent.answer("{\"mark\":\"late\"}");
            }
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn take_in(
    sent: Sent,
    pool: &mut Vec<Sent>,
    marks: &mut HashMap<String, String>,
    dice: &mut Dice,
    forgetful: bool,
) {
    if let Some(id) = sent.part(&["id"]) {
        let mark = sent.part(&["params", "mark"]).unwrap().to_owned();
        let other = marks.insert(id.to_owned(), mark);
        assert_eq!(other, None, "the number {id} came twice");
        pool.push(sent);
        return;
    }
    let id = sent.part(&["params", "requestId"]).expect("a cancel");
    // A cancel of the gateway itself, when time is up, has no mark.
    if let Some(mark) = sent.part(&["params", "mark"]) {
        assert_eq!(marks.get(id).map(String::as_str), Some(mark), "a cancel of another's request");
    }
    if forgetful && dice.one_in(2) {
        pool.retain(|sent| sent.id() != id);
    }
}

fn answer(sent: &Sent, dice: &mut Dice) {
    let params = sent.part(&["params"]).unwrap();
    let mark = sent.part(&["params", "mark"]).unwrap();
    let progress = |token: &str| {
        sent.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"mark":{mark}}}}}"#
        ));
    };
    if dice.one_in(4) {
        progress(sent.id());
    }
    sent.answer(params);
    if dice.one_in(10) {
        // Once more, too late, and to numbers that never were: all of it is nobody's.
        sent.answer("{\"mark\":\"again\"}");
        progress(sent.id());
        let stray = dice.roll() | 1 << 40;
        sent.say(&format!(r#"{{"jsonrpc":"2.0","id":{stray},"result":{{"mark":"stray"}}}}"#));
        progress(&stray.to_string());
    }
}
