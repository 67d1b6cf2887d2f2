use super::*;

fn body(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

#[tokio::test]
async fn one_answer_alone_is_an_answer() {
    let outlet = Outlet::new(1);
    outlet.answer(body("a"), Some(400));
    let First::Answer(answer, status) = outlet.first().await else { panic!("a stream") };
    assert_eq!((answer.into_bytes(), status), (body("a"), 400));
}

#[tokio::test]
async fn a_message_before_the_answer_makes_a_stream() {
    let outlet = Arc::new(Outlet::new(1));
    outlet.push(body("note"));
    outlet.answer(body("answer"), None);
    assert!(matches!(outlet.first().await, First::Stream));
    let mut reader = outlet.read(None);
    assert_eq!(reader.next().await, Next::Event(1, body("note")));
    assert_eq!(reader.next().await, Next::Event(2, body("answer")));
    assert_eq!(reader.next().await, Next::End);
}

#[tokio::test]
async fn a_waiting_first_is_woken() {
    let outlet = Arc::new(Outlet::new(1));
    let waiting = tokio::spawn({
        let outlet = Arc::clone(&outlet);
        async move { outlet.first().await }
    });
    tokio::task::yield_now().await;
    outlet.answer(body("late"), None);
    assert!(matches!(waiting.await.unwrap(), First::Answer(..)));
}

#[tokio::test]
async fn reading_goes_on_after_a_number() {
    let outlet = Arc::new(Outlet::new(7));
    for n in 1..=5 {
        outlet.push(body(&n.to_string()));
    }
    let mut reader = outlet.read(Some(3));
    assert_eq!(reader.next().await, Next::Event(4, body("4")));
    // Without a number it goes on after what was handed out, not after what was pushed.
    drop(reader);
    let mut reader = outlet.read(None);
    assert_eq!(reader.next().await, Next::Event(5, body("5")));
}

#[tokio::test]
async fn the_newest_reader_wins() {
    let outlet = Arc::new(Outlet::new(1));
    let mut old = outlet.read(None);
    let mut new = outlet.read(None);
    outlet.push(body("x"));
    assert_eq!(old.next().await, Next::End);
    assert_eq!(new.next().await, Next::Event(1, body("x")));
}

#[tokio::test]
async fn a_slow_reader_is_told_of_the_gap_and_memory_stays_bounded() {
    let outlet = Arc::new(Outlet::new(1));
    let mut reader = outlet.read(None);
    for n in 0..(MAX_EVENTS + 10) {
        outlet.push(body(&n.to_string()));
    }
    assert_eq!(reader.next().await, Next::Gap);
    assert_eq!(reader.next().await, Next::Event(11, body("10")));

    let big = Bytes::from(vec![b'x'; MAX_BYTES / 2 + 1]);
    for _ in 0..4 {
        outlet.push(big.clone());
        assert!(outlet.bytes() <= MAX_BYTES + big.len());
    }
    outlet.push(Bytes::from(vec![b'y'; MAX_BYTES * 2]));
    assert_eq!(outlet.bytes(), MAX_BYTES * 2, "one message is always kept, and then it alone");
}

#[tokio::test]
async fn a_pause_ends_one_connection_once() {
    let outlet = Arc::new(Outlet::new(1));
    let mut reader = outlet.read(None);
    outlet.push(body("before"));
    outlet.pause(Some(Duration::from_millis(5)));
    assert_eq!(reader.next().await, Next::Event(1, body("before")));
    assert_eq!(reader.next().await, Next::Pause(Some(Duration::from_millis(5))));
    outlet.push(body("after"));
    let mut again = outlet.read(Some(1));
    assert_eq!(again.next().await, Next::Event(2, body("after")));
}

#[tokio::test]
async fn an_outlet_of_several_answers_ends_with_the_last() {
    let outlet = Arc::new(Outlet::expecting(1, 2));
    outlet.answer(body("one"), None);
    assert!(!outlet.ended());
    assert!(matches!(outlet.first().await, First::Stream));
    outlet.answer(body("two"), None);
    assert!(outlet.ended());
    outlet.answer(body("three"), None);
    let mut reader = outlet.read(None);
    assert_eq!(reader.next().await, Next::Event(1, body("one")));
    assert_eq!(reader.next().await, Next::Event(2, body("two")));
    assert_eq!(reader.next().await, Next::End);
}
