use super::check;

#[test]
fn the_second_of_two_keys_is_named() {
    let json = r#"{"b":1,"a":{"x":1},"b":2,"b":3}"#;
    let fault = check(json, &[]).unwrap_err();
    assert_eq!(crate::edit::offset(json, fault.at), json.find(r#""b":2"#));
}

#[test]
fn many_keys_are_checked_fast() {
    use std::fmt::Write as _;

    let mut json = String::from("{");
    for number in 0..200_000 {
        write!(json, "\"k{number}\":0,").unwrap();
    }
    check(&format!("{json}\"k\":0}}"), &[]).unwrap();
    check(&format!("{json}\"k77777\":0}}"), &[]).unwrap_err();
}
