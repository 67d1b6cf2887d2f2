use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::oneshot;
use toolgate_admission::answer_kind::AnswerKind;

use super::*;
use crate::channel::{BoxFuture, Channel, Connector, Inbox, SendError};
use crate::event_buffer::First;
use crate::link::{Instances, ServerSettings};
use crate::metrics::Metrics;
use crate::pins::PinMode;
use crate::reply::Reply;
use crate::results::Results;
use crate::tasks::Role;

/// A server that is never connected to; failures name it.
fn server() -> Server {
    struct Nowhere;
    impl Connector for Nowhere {
        fn connect(&self, _: Arc<dyn Inbox>) -> BoxFuture<'_, Result<Arc<dyn Channel>, SendError>> {
            Box::pin(std::future::ready(Err(SendError::NotSent("nowhere".to_owned()))))
        }
    }
    let settings = ServerSettings {
        name: "files".to_owned(),
        instances: Instances::PerAgent,
        timeout: Duration::from_secs(1),
        start_timeout: Duration::from_secs(1),
        reconnect_timeout: Duration::from_secs(1),
        tool_timeouts: HashMap::new(),
        tool_classes: HashMap::new(),
        bare_names: false,
        max_requests: 1000,
        backs_off: false,
        pin: PinMode::First,
        validate: false,
        results: Results::Pass,
    };
    Server::new(settings, Arc::new(Nowhere), Metrics::default().of_server("files"))
}

/// Lets a request `id` of the agent session `session` wait.
fn wait(room: &Waiters, session: u64, id: &str) -> (u64, Arc<EventBuffer>) {
    let number = room.number();
    let buffer = Arc::new(EventBuffer::expecting(number, 1));
    let waiting = AgentWaiter {
        session,
        reply: Reply::new(&buffer, id, AnswerKind::Other),
        token: Some("\"t\"".into()),
        mapped: false,
        held: false,
        role: Role::Call,
        list: None,
        hides: None,
        from_start: None,
        epoch: None,
        cancelled: false,
        bridge: None,
        answered: oneshot::channel().0,
    };
    room.insert(number, Waiter::Agent(waiting));
    (number, buffer)
}

fn lost() -> Failure {
    Failure::Lost { why: "it broke".to_owned() }
}

#[test]
fn numbers_are_assigned_once_and_waiters_taken_once() {
    let room = Waiters::new();
    let (first, _) = wait(&room, 1, "7");
    let (second, _) = wait(&room, 2, "7");
    assert_ne!(first, second);
    assert!(matches!(room.take(first), Some(Waiter::Agent(agent)) if agent.session == 1));
    assert!(room.take(first).is_none());
    assert_ne!(room.number(), first, "a number that is free again is not given again");
}

#[test]
fn a_request_that_was_not_sent_never_is_once_withdrawn() {
    let room = Waiters::new();
    let (number, buffer) = wait(&room, 1, "7");
    assert_eq!(room.withdraw(1, "7"), None);
    assert!(buffer.ended());
    assert!(!room.mark_sent(number, 1));
}

#[test]
fn only_the_agent_itself_can_withdraw_and_only_by_its_own_spelling() {
    let room = Waiters::new();
    let (number, _) = wait(&room, 1, "7");
    let (others, _) = wait(&room, 2, "7");
    assert!(room.mark_sent(number, 1) && room.mark_sent(others, 1));
    assert_eq!(room.withdraw(3, "7"), None);
    assert_eq!(room.withdraw(1, "\"7\""), None);
    assert_eq!(room.withdraw(1, "7.0"), None);
    assert_eq!(room.withdraw(1, "7"), Some(number));
    assert_eq!(room.withdraw(2, "7"), Some(others));
    assert!(room.take(number).is_some(), "one that was sent still waits: the server may answer");
}

#[tokio::test]
async fn a_lost_channel_fails_what_was_sent_over_it_and_nothing_else() {
    let (room, server) = (Waiters::new(), server());
    let (sent, sent_buffer) = wait(&room, 1, "1");
    let (bridge, newer_buffer) = wait(&room, 1, "2");
    let (_, unsent_buffer) = wait(&room, 1, "3");
    let (sender, mut handshake) = oneshot::channel();
    room.insert(room.number(), Waiter::Own(sender, 2));
    room.mark_sent(sent, 1);
    room.mark_sent(bridge, 2);

    room.fail_epoch(1, &lost(), &server);
    let First::Answer(answer, _) = sent_buffer.first().await else { panic!("no answer") };
    assert!(String::from_utf8_lossy(&answer.into_bytes()).contains("it broke"));
    assert!(!newer_buffer.ended() && !unsent_buffer.ended());
    assert!(handshake.try_recv().is_err());

    room.fail_all(&lost(), &server);
    assert!(newer_buffer.ended() && unsent_buffer.ended());
    assert_eq!(handshake.try_recv(), Ok(Err(lost())));
    assert!(!room.fail(sent, &lost(), &server), "nobody is told twice");
}

#[test]
fn failing_reports_whether_the_request_was_sent() {
    let (room, server) = (Waiters::new(), server());
    let (sent, _) = wait(&room, 1, "1");
    let (unsent, _) = wait(&room, 1, "2");
    room.mark_sent(sent, 1);
    assert!(room.fail(sent, &lost(), &server));
    assert!(!room.fail(unsent, &lost(), &server));
}

#[test]
fn buffers_are_found_by_number_and_by_what_runs() {
    let room = Waiters::new();
    let number_of = |buffer: Option<Arc<EventBuffer>>| buffer.map(|buffer| buffer.number());
    let (first, _) = wait(&room, 1, "1");
    let (second, _) = wait(&room, 1, "2");
    let (unsent, _) = wait(&room, 1, "3");
    let (sender, _receiver) = oneshot::channel();
    let handshake = room.number();
    room.insert(handshake, Waiter::Own(sender, 1));
    assert_eq!(number_of(room.only_buffer()), None, "nothing runs");

    room.mark_sent(first, 1);
    assert_eq!(number_of(room.only_buffer()), Some(first));
    room.mark_sent(second, 1);
    assert_eq!(number_of(room.only_buffer()), None, "two run");
    assert_eq!(number_of(room.newest_buffer()), Some(second));
    assert_eq!(number_of(room.buffer_of(unsent)), Some(unsent));
    assert_eq!(number_of(room.buffer_of(handshake)), None);

    let (buffer, token) = room.progress_of(first).unwrap();
    assert_eq!((buffer.number(), &*token), (first, "\"t\""));
    room.take(first);
    assert!(room.progress_of(first).is_none(), "what is answered makes no more progress");
}
