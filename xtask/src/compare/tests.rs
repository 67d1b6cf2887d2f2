use super::*;

const TOUR: &str = r#"{"steps": [{"name": "call"}, {"name": "stopped", "cancel": true}, {"await": "x"}],
    "varying": [
        {"step": "call", "path": "result/at", "mask": "value", "reason": "the time"},
        {"step": "call", "path": "result/list/*/text", "mask": "uuid", "reason": "an id"},
        {"incoming": "note", "path": "params/data", "mask": {"after": "at "}, "reason": "the time"},
        {"incoming": "changed", "mask": "count", "only": "http", "reason": "a race"}]}"#;

/// The answer to `call` and what the server sent, as a driver writes it.
fn transcript(result: &str, notes: &[&str]) -> Transcript {
    let answer = |step: &str, result: &str| Answer {
        step: step.to_owned(),
        raw: format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, result.len()),
        repeated: false,
    };
    let note = |raw: &&str| Incoming {
        method: raw.split('"').nth(3).unwrap().to_owned(),
        raw: (*raw).to_owned(),
        late: raw.contains("late"),
        repeated: false,
    };
    Transcript {
        answers: vec![answer("initialize", "{}"), answer("call", result)],
        incoming: notes.iter().map(note).collect(),
        http: Vec::new(),
        listed: None,
    }
}

const RESULT: &str = r#"{"at":1,"list":[{"text":"id 3f0e1c52-0a4b-4c8e-9d7f-aa11bb22cc33 end"}],"n":1.0,"s":"\u00e9"}"#;
const NOTES: &[&str] = &[r#"{"method":"note","params":{"data":"done at 10:00"}}"#];

fn check(link: Link, left: &Transcript, right: &Transcript, expected: &[&str]) {
    let tour = Tour::parse(TOUR).unwrap();
    let found = compare(&tour, link, left, right);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "`{found}` does not say `{expected}`");
    }
}

#[test]
fn equal_but_for_what_the_table_names() {
    let other = RESULT.replace("\"at\":1", "\"at\":\"later\"").replace("3f0e1c52", "00000000");
    let notes = [r#"{"params":{"data":"done at 11:30"},"method":"note"}"#];
    let mut right = transcript(&other, &[]);
    right.incoming = vec![Incoming {
        method: "note".into(),
        raw: notes[0].into(),
        late: false,
        repeated: false,
    }];
    check(Link::Stdio, &transcript(RESULT, NOTES), &right, &[]);
}

/// One change each, and the expected difference.
#[test]
fn every_kind_of_difference_is_found() {
    for (from, to, said) in [
        ("\"n\":1.0", "\"n\":1", "/result/n"),
        ("\"n\":1.0", "\"n\":1.00", "/result/n"),
        ("\"n\":1.0", "\"n\":\"1.0\"", "/result/n"),
        ("\\u00e9", "é", "/result/s"),
        ("id 3f", "Id 3f", "/result/list/0/text"),
        ("[{", "[{},{", "/result/list: 1 items direct, 2 through"),
        ("\"n\":1.0,", "", "members at, list, n, s direct, at, list, s through"),
        ("\"n\":1.0", "\"n\":1.0,\"n\":1.0", "members"),
        ("\"n\":1.0,\"s\":\"\\u00e9\"", "\"s\":\"\\u00e9\",\"n\":1.0", "members"),
    ] {
        let changed = RESULT.replace(from, to);
        assert_ne!(changed, RESULT);
        let (left, right) = (transcript(RESULT, NOTES), transcript(&changed, NOTES));
        let found = compare(&Tour::parse(TOUR).unwrap(), Link::Stdio, &left, &right);
        assert!(found.iter().any(|text| text.contains(said)), "{to}: {found:?}");
    }
}

#[test]
fn an_answer_too_many_or_too_few_is_a_difference() {
    let whole = transcript(RESULT, NOTES);
    let mut twice = whole.clone();
    twice.answers.push(twice.answers[1].clone());
    check(Link::Stdio, &whole, &twice, &["`call`: answered 2 times", "1 messages direct, 2"]);
    let mut none = whole.clone();
    none.answers.pop();
    check(Link::Stdio, &whole, &none, &["`call`: answered 0 times", "1 messages direct, 0"]);
    let mut stray = whole.clone();
    stray.answers.push(Answer { step: "stopped".into(), raw: "{}".into(), repeated: false });
    check(Link::Stdio, &whole, &stray, &["`stopped`: answered 1 times", "0 messages direct, 1"]);
    // Two runs that are wrong in the same way are not right.
    check(Link::Stdio, &none, &none, &["direct", "through", "matches nothing", "matches nothing"]);
}

#[test]
fn notifications_are_compared_unless_the_table_excludes_them() {
    let changed = r#"{"method":"changed"}"#;
    let once = transcript(RESULT, &[NOTES[0], changed]);
    let twice = transcript(RESULT, &[changed, NOTES[0], changed]);
    check(Link::Http, &once, &twice, &[]);
    check(Link::Stdio, &once, &twice, &["`changed` from the server: 1 messages direct, 2 through"]);
    let none = transcript(RESULT, NOTES);
    check(Link::Http, &once, &none, &[]);
    check(Link::Stdio, &once, &none, &["`changed` from the server: 1 messages direct, 0 through"]);
    let other = transcript(RESULT, &[NOTES[0], r#"{"method":"changed","params":{}}"#]);
    check(Link::Http, &once, &other, &["members"]);
}

#[test]
fn late_progress_is_not_compared() {
    let late = transcript(RESULT, &[NOTES[0], r#"{"method":"progress","params":{"late":1}}"#]);
    check(Link::Stdio, &late, &transcript(RESULT, NOTES), &[]);
}

#[test]
fn a_rule_without_use_is_a_complaint() {
    let plain = transcript(RESULT, &[]);
    check(Link::Stdio, &plain, &plain, &["rule `note: params/data After(\"at \")"]);
}

#[test]
fn repeats_are_dropped_from_direct_walks_of_servers_that_make_them() {
    let mut repeating = transcript(RESULT, NOTES);
    repeating.answers.push(Answer { repeated: true, ..repeating.answers[1].clone() });
    repeating.incoming.push(Incoming { repeated: true, ..repeating.incoming[0].clone() });
    let strict = Tour::parse(TOUR).unwrap();
    assert_eq!(repeating.clone().of_direct_walk(&strict).answers.len(), 3);
    let lenient = TOUR.replacen('{', r#"{"repeats": "it does","#, 1);
    let walk = repeating.of_direct_walk(&Tour::parse(&lenient).unwrap());
    check(Link::Stdio, &walk, &transcript(RESULT, NOTES), &[]);
}

#[test]
fn failed_exchanges_and_a_session_left_behind_are_faults() {
    let mut walk = transcript(RESULT, NOTES);
    let exchange = |method: &str, status| Exchange { method: method.to_owned(), status };
    assert_eq!(walk.http_faults(), ["the session was not ended by DELETE"]);
    walk.http = vec![exchange("POST", 200), exchange("GET", 405), exchange("DELETE", 204)];
    assert_eq!(walk.http_faults(), ["GET was answered 405"]);
    walk.http = vec![exchange("POST", 200), exchange("DELETE", 500), exchange("GET", 404)];
    assert_eq!(walk.http_faults(), ["DELETE was answered 500"]);
}

#[test]
fn calls_among_other_servers_are_compared_under_their_own_names() {
    let tour = r#"{"steps":[{"name":"tools","request":"tools/list"},{"name":"read","call":"read"}],"varying":[]}"#;
    let tour = Tour::parse(tour).unwrap();
    let answer = |step: &str, result: &str| Answer {
        step: step.to_owned(),
        raw: format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#),
        repeated: false,
    };
    let walk =
        |answers, listed| Transcript { answers, incoming: Vec::new(), http: Vec::new(), listed };
    let listing = answer("tools", r#"{"tools":[{"name":"read"}]}"#);
    let direct = walk(vec![listing, answer("read", r#"{"uri":"file:///a"}"#)], None);
    let listed = |name: &str| Some(vec![name.to_owned()]);
    let right = answer("read", r#"{"uri":"files+file:///a"}"#);
    for (answers, listed, compared, faults) in [
        (vec![right.clone()], listed("read"), 1, 0),
        (vec![right], listed("write"), 1, 1),
        (vec![answer("read", r#"{"uri":"files+file:///b"}"#)], listed("read"), 1, 1),
        (vec![answer("ask", "{}")], listed("read"), 0, 0),
    ] {
        let among = walk(answers, listed);
        let (count, found) = compare_calls(&tour, Link::Stdio, &direct, &among, "files");
        assert_eq!((count, found.len()), (compared, faults), "{found:?}");
    }
}
