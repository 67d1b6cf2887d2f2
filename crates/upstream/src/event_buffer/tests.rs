use super::*;

fn body(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

#[tokio::test]
async fn one_answer_alone_is_an_answer() {
    let buffer = EventBuffer::new(1);
    buffer.answer(body("a"), Some(Rejection::InvalidRequest));
    let First::Answer(answer, rejection) = buffer.first().await else { panic!("a stream") };
    assert_eq!(answer.into_bytes(), body("a"));
    assert_eq!(rejection, Some(Rejection::InvalidRequest));
}

#[tokio::test]
async fn a_message_before_the_answer_makes_a_stream() {
    let buffer = Arc::new(EventBuffer::new(1));
    buffer.push(body("note"));
    buffer.answer(body("answer"), None);
    assert!(matches!(buffer.first().await, First::Stream));
    let mut reader = buffer.read(None);
    assert_eq!(reader.next().await, Next::Event(1, body("note")));
    assert_eq!(reader.next().await, Next::Event(2, body("answer")));
    assert_eq!(reader.next().await, Next::End);
}

#[tokio::test]
async fn a_waiting_first_is_woken() {
    let buffer = Arc::new(EventBuffer::new(1));
    let waiting = tokio::spawn({
        let buffer = Arc::clone(&buffer);
        async move { buffer.first().await }
    });
    tokio::task::yield_now().await;
    buffer.answer(body("late"), None);
    assert!(matches!(waiting.await.unwrap(), First::Answer(..)));
}

#[tokio::test]
async fn reading_goes_on_after_a_number() {
    let buffer = Arc::new(EventBuffer::new(7));
    for n in 1..=5 {
        buffer.push(body(&n.to_string()));
    }
    let mut reader = buffer.read(Some(3));
    assert_eq!(reader.next().await, Next::Event(4, body("4")));
    // Without a number, reading continues after the last delivered message.
    drop(reader);
    let mut reader = buffer.read(None);
    assert_eq!(reader.next().await, Next::Event(5, body("5")));
}

#[tokio::test]
async fn the_newest_reader_wins() {
    let buffer = Arc::new(EventBuffer::new(1));
    let mut old = buffer.read(None);
    let mut new = buffer.read(None);
    buffer.push(body("x"));
    assert_eq!(old.next().await, Next::End);
    assert_eq!(new.next().await, Next::Event(1, body("x")));
}

#[tokio::test]
async fn a_slow_reader_learns_of_the_gap_and_memory_stays_bounded() {
    let buffer = Arc::new(EventBuffer::new(1));
    let mut reader = buffer.read(None);
    for n in 0..(MAX_EVENTS + 10) {
        buffer.push(body(&n.to_string()));
    }
    assert_eq!(reader.next().await, Next::Gap);
    assert_eq!(reader.next().await, Next::Event(11, body("10")));

    let big = Bytes::from(vec![b'x'; MAX_BYTES / 2 + 1]);
    for _ in 0..4 {
        buffer.push(big.clone());
        assert!(buffer.bytes() <= MAX_BYTES + big.len());
    }
    buffer.push(Bytes::from(vec![b'y'; MAX_BYTES * 2]));
    assert_eq!(buffer.bytes(), MAX_BYTES * 2, "one message is always kept, and then it alone");
}

#[tokio::test]
async fn a_pause_ends_one_connection_once() {
    let buffer = Arc::new(EventBuffer::new(1));
    let mut reader = buffer.read(None);
    buffer.push(body("before"));
    buffer.pause(Some(Duration::from_millis(5)));
    assert_eq!(reader.next().await, Next::Event(1, body("before")));
    assert_eq!(reader.next().await, Next::Pause(Some(Duration::from_millis(5))));
    buffer.push(body("after"));
    let mut again = buffer.read(Some(1));
    assert_eq!(again.next().await, Next::Event(2, body("after")));
}

#[tokio::test]
async fn a_buffer_of_several_answers_ends_with_the_last() {
    let buffer = Arc::new(EventBuffer::expecting(1, 2));
    buffer.answer(body("one"), None);
    assert!(!buffer.ended());
    assert!(matches!(buffer.first().await, First::Stream));
    buffer.answer(body("two"), None);
    assert!(buffer.ended());
    buffer.answer(body("three"), None);
    let mut reader = buffer.read(None);
    assert_eq!(reader.next().await, Next::Event(1, body("one")));
    assert_eq!(reader.next().await, Next::Event(2, body("two")));
    assert_eq!(reader.next().await, Next::End);
}

#[tokio::test]
async fn a_pause_ends_when_the_agent_is_back() {
    let buffer = Arc::new(EventBuffer::new(1));
    buffer.pause(Some(Duration::from_secs(5)));
    let resumed = tokio::spawn(Arc::clone(&buffer).resumed());
    let mut reader = buffer.read(None);
    tokio::task::yield_now().await;
    assert!(!resumed.is_finished(), "the first reader has not been told of the pause");
    assert_eq!(reader.next().await, Next::Pause(Some(Duration::from_secs(5))));
    tokio::task::yield_now().await;
    assert!(!resumed.is_finished());
    drop(reader);
    let _back = buffer.read(Some(0));
    resumed.await.unwrap();
}
