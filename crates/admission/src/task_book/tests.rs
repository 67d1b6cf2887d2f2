use super::*;

fn grant(label: &str) -> Arc<str> {
    label.into()
}

#[test]
fn a_task_with_an_open_call_is_never_evicted() {
    let (book, mine) = (TaskBook::default(), grant("mine"));
    let open: Vec<_> = (0..MAX_TASKS / 2)
        .map(|n| book.create(&mine, ("s", &format!("open-{n}")), 1, false, true).unwrap())
        .collect();
    // Tasks whose call has ended make room for each other.
    for n in 0..MAX_TASKS {
        book.create(&mine, ("s", &format!("over-{n}")), 1, false, true).unwrap();
    }
    assert_eq!(book.owner("mine", "s", "over-0"), TaskOwner::Unknown);
    for (n, updates) in open.iter().enumerate() {
        assert_eq!(book.owner("mine", "s", &format!("open-{n}")), TaskOwner::Own, "{n}");
        assert!(!updates.is_closed());
    }
    let rest: Vec<_> = (0..MAX_TASKS / 2)
        .map(|n| book.create(&mine, ("s", &format!("rest-{n}")), 1, false, true).unwrap())
        .collect();
    let refused = book.create(&mine, ("s", "one more"), 1, false, true).unwrap_err();
    assert_eq!(refused, NotFollowed::Full);
    // Another grant has its own limit, and the grant has room again when a task has ended.
    assert!(book.create(&grant("other"), ("s", "theirs"), 2, false, true).is_ok());
    drop(rest);
    assert!(book.create(&mine, ("s", "one more"), 1, false, true).is_ok());
}

#[test]
fn calls_with_the_same_task_id_are_all_tracked() {
    let (book, mine) = (TaskBook::default(), grant("mine"));
    // If each agent session has its own server process, ids repeat.
    let create = |session| book.create(&mine, ("s", "1"), session, false, false).unwrap();
    let mut all: Vec<_> = (0..3_000).map(create).collect();
    let update = TaskUpdate { status: Some("working".to_owned()), ..TaskUpdate::default() };
    assert!(book.update(("mine", 0), "s", "1", &update));
    assert!(all[0].try_recv().is_ok());
    assert!(all.iter_mut().skip(1).all(|one| one.try_recv().is_err() && !one.is_closed()));
}

#[test]
fn open_tasks_of_a_grant_are_limited() {
    let book = TaskBook::default();
    let open: Vec<_> = (0..MAX_OPEN).map(|_| book.open_task(&grant("mine"))).collect();
    assert!(book.is_full("mine") && !book.is_full("other"));
    drop(open);
    assert!(!book.is_full("mine") && book.open_of.lock().is_empty());
}
