use proptest::prelude::*;

use super::nested_len;

/// The same, byte by byte. `Err` where a backslash stands outside a string, which is no JSON.
fn naive(json: &[u8]) -> Result<Option<usize>, ()> {
    let (mut depth, mut in_string, mut escaped) = (0_u32, false, false);
    for (index, byte) in json.iter().enumerate() {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') => in_string = false,
            (false, b'\\') => return Err(()),
            (false, b'"') => in_string = true,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') => {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(index + 1));
                }
            }
            _ => {}
        }
    }
    Ok(None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn finds_what_a_naive_scan_finds(
        text in prop_oneof![r#"[{}\[\]"\\a ,:]{0,300}"#, r#"[a-z]{0,80}(\\{0,9}"|[{}\[\]a-z]){0,200}"#]
    ) {
        let json = format!("{{{text}");
        if let Ok(expected) = naive(json.as_bytes()) {
            prop_assert_eq!(nested_len(json.as_bytes()), expected, "{}", json);
        }
    }
}

#[test]
fn block_borders() {
    for length in 0..200 {
        for text in ["a", r"\\", r#"\""#, "é", "}"] {
            let string = text.repeat(length);
            let json = format!(r#"{{"k":["{string}",{{}}]}}, "after": {{}}"#);
            let end = json.find(", \"after\"").unwrap();
            assert_eq!(nested_len(json.as_bytes()), Some(end), "{json}");
            assert_eq!(nested_len(&json.as_bytes()[..end - 1]), None, "{json}");
        }
    }
}
