use super::*;

fn grant(label: &str) -> Arc<str> {
    label.into()
}

#[test]
fn a_task_with_an_open_call_is_never_evicted() {
    let (book, mine) = (Book::default(), grant("mine"));
    let open: Vec<_> = (0..MAX_TASKS / 2)
        .map(|n| book.create(&mine, ("s", &format!("open-{n}")), 1, false, true).unwrap())
        .collect();
    // Tasks whose call has ended make room for each other.
    for n in 0..MAX_TASKS {
        book.create(&mine, ("s", &format!("over-{n}")), 1, false, true).unwrap();
    }
    assert_eq!(book.whose("mine", "s", "over-0"), Whose::Unknown);
    for (n, heard) in open.iter().enumerate() {
        assert_eq!(book.whose("mine", "s", &format!("open-{n}")), Whose::Mine, "{n}");
        assert!(!heard.is_closed());
    }
    let rest: Vec<_> = (0..MAX_TASKS / 2)
        .map(|n| book.create(&mine, ("s", &format!("rest-{n}")), 1, false, true).unwrap())
        .collect();
    let refused = book.create(&mine, ("s", "one more"), 1, false, true).unwrap_err();
    assert_eq!(refused, NotFollowed::Full);
    // Another grant has its own share, and the grant has room again when a task has ended.
    assert!(book.create(&grant("other"), ("s", "theirs"), 2, false, true).is_ok());
    drop(rest);
    assert!(book.create(&mine, ("s", "one more"), 1, false, true).is_ok());
}

#[test]
fn calls_with_the_same_task_id_are_all_followed() {
    let (book, mine) = (Book::default(), grant("mine"));
    // Where each agent session has a server of its own, ids repeat.
    let create = |session| book.create(&mine, ("s", "1"), session, false, false).unwrap();
    let mut all: Vec<_> = (0..3_000).map(create).collect();
    let heard = Heard { status: Some("working".to_owned()), ..Heard::default() };
    assert!(book.hear(("mine", 0), "s", "1", &heard));
    assert!(all[0].try_recv().is_ok());
    assert!(all.iter_mut().skip(1).all(|one| one.try_recv().is_err() && !one.is_closed()));
}

#[test]
fn a_grant_has_as_many_open_tasks_as_it_may_have() {
    let book = Book::default();
    let places: Vec<_> = (0..MAX_OPEN).map(|_| book.place(&grant("mine"))).collect();
    assert!(book.is_full("mine") && !book.is_full("other"));
    drop(places);
    assert!(!book.is_full("mine") && book.open_of.lock().is_empty());
}
