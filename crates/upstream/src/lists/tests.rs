use super::*;

fn list(kind: Kind, pages: &[&str]) -> List {
    let naming = Naming::new("files", false);
    let mut builder = Builder::new(kind, &naming);
    for page in pages {
        builder.add(page).unwrap();
    }
    builder.finish()
}

fn whole(list: &List) -> String {
    String::from_utf8(list.page(0, usize::MAX).0.to_vec()).unwrap()
}

#[test]
fn only_names_change() {
    let cases = [
        (
            Kind::Tools,
            r#"{"tools":[{"x":1.0,"name":"a"},{"name":"b","_meta":{"ui":{"resourceUri":"ui://w/1","k":[1e5]}}}]}"#,
            r#"{"x":1.0,"name":"files__a"},{"name":"files__b","_meta":{"ui":{"resourceUri":"ui://files+w/1","k":[1e5]}}}"#,
        ),
        (
            Kind::Prompts,
            r#"{"prompts":[{"name":"p","title":"P"}]}"#,
            r#"{"name":"files__p","title":"P"}"#,
        ),
        (
            Kind::Resources,
            r#"{"resources":[{"uri":"demo://a","name":"a"}]}"#,
            r#"{"uri":"files+demo://a","name":"a"}"#,
        ),
        (
            Kind::Templates,
            r#"{"resourceTemplates":[{"uriTemplate":"demo://{id}","name":"t"}]}"#,
            r#"{"uriTemplate":"files+demo://{id}","name":"t"}"#,
        ),
        (Kind::Tools, r#"{"tools":[{"name":"\u0061\"b"}]}"#, r#"{"name":"files__a\"b"}"#),
    ];
    for (kind, result, shown) in cases {
        assert_eq!(whole(&list(kind, &[result])), shown);
    }
}

#[test]
fn pages_are_joined_and_bad_entries_left_out() {
    let first = r#"{"tools":[{"name":"a"},{"title":"nameless"},{"name":7}],"nextCursor":"x"}"#;
    let second = r#"{"tools":[{"name":"a","again":true},{"name":"b"}],"nextCursor":null}"#;
    let naming = Naming::new("files", false);
    let mut builder = Builder::new(Kind::Tools, &naming);
    assert_eq!(builder.add(first).unwrap(), Some("\"x\""));
    assert_eq!(builder.add(second).unwrap(), None);
    let list = builder.finish();
    assert_eq!(whole(&list), r#"{"name":"files__a"},{"name":"files__b"}"#);
    assert!(list.has("a") && list.has("b") && !list.has("files__a"));
    assert_eq!(list.len(), 2);
}

#[test]
fn a_list_that_cannot_be_read_hides_everything() {
    let hidden = |own: &str| own == "secret";
    let tools = |result: &str| without_hidden(Kind::Tools, result, hidden);
    for result in [
        "{}",
        "[]",
        "7",
        r#"{"tools":null}"#,
        r#"{"tools":{"name":"secret"}}"#,
        r#"{"tools":[],"tools":[{"name":"secret"}]}"#,
        r#"{"tools":[],"\u0074ools":[{"name":"secret"}]}"#,
        r#"{"tools":[],"Tools":[{"name":"secret"}]}"#,
        r#"{"tools":[{"name":"a","name":"secret"}]}"#,
        r#"{"tools":[{"name":"a","NAME":"secret"}]}"#,
        r#"{"tools":[{"name":"a","\ud800":1}]}"#,
        r#"{"tools":[{"name":"a"}]},{"name":"secret"}"#,
    ] {
        assert_eq!(tools(result), Err(Unreadable), "{result}");
    }
    let shown = [
        (r#"{"tools":[{"name":"a"},{"x":1.0,"name":"b"}]}"#, None),
        (r#"{"tools":[]}"#, None),
        (
            r#"{"tools":[{"name":"a"},{"name":"s\u0065cret"},{"name":7},{},"secret"],"x":1.0}"#,
            Some(r#"{"tools":[{"name":"a"}],"x":1.0}"#),
        ),
    ];
    for (result, expected) in shown {
        assert_eq!(tools(result).unwrap().as_deref(), expected, "{result}");
    }
    let uris = r#"{"resources":[{"uri":"secret","name":"a"},{"uri":"a","name":"secret"}]}"#;
    let shown = without_hidden(Kind::Resources, uris, hidden).unwrap();
    assert_eq!(shown.as_deref(), Some(r#"{"resources":[{"uri":"a","name":"secret"}]}"#));
}

#[test]
fn a_result_that_is_no_list_is_refused() {
    let naming = Naming::new("files", false);
    for result in [
        "{}",
        r#"{"content":[{"type":"text","text":"a lie"}]}"#,
        r#"{"tools":null}"#,
        r#"{"tools":{"name":"a"}}"#,
        r#"{"prompts":[]}"#,
    ] {
        let refused = Builder::new(Kind::Tools, &naming).add(result).unwrap_err();
        assert_eq!(refused.message, "`tools` is not an array", "{result}");
    }
    assert!(Builder::new(Kind::Tools, &naming).add(r#"{"tools":[]}"#).is_ok());
}

#[test]
fn pages_cut_between_entries() {
    let names: Vec<_> = (0..10).map(|n| format!(r#"{{"name":"t{n}"}}"#)).collect();
    let list = list(Kind::Tools, &[&format!(r#"{{"tools":[{}]}}"#, names.join(","))]);
    let entry = r#"{"name":"files__t0"}"#.len();
    let every = |_: &str| true;
    assert_eq!(list.page_of(3, 1, every), list.page(3, 1));
    assert_eq!(list.page_of(0, usize::MAX, every), list.page(0, usize::MAX));
    let odd = list.page_of(0, 2 * entry + 2, |own| !own.ends_with(['0', '2', '4', '6', '8']));
    assert_eq!(odd, (bytes::Bytes::from(r#"{"name":"files__t1"},{"name":"files__t3"}"#), Some(5)));
    for (room, expected) in [(0, 1), (entry, 1), (2 * entry, 1), (2 * entry + 1, 2), (900, 10)] {
        let (mut from, mut seen, mut pages) = (0, Vec::new(), 0);
        loop {
            let (page, next) = list.page(from, room);
            let page = String::from_utf8(page.to_vec()).unwrap();
            seen.extend(
                items(&format!("[{page}]")).unwrap().unwrap().iter().map(|item| (*item).to_owned()),
            );
            pages += 1;
            let Some(next) = next else { break };
            from = next;
        }
        assert_eq!(seen.join(","), whole(&list), "{room}");
        assert_eq!(pages, 10_usize.div_ceil(expected), "{room}");
    }
}
