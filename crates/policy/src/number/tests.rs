use std::cmp::Ordering;

use proptest::prelude::*;

use super::{Amount, AmountError, Number};

fn compare(a: &str, b: &str) -> Ordering {
    Number::parse(a).unwrap().compare(&Number::parse(b).unwrap())
}

#[test]
fn numbers_compare_by_exact_value() {
    use Ordering::{Equal, Greater, Less};
    for (a, b, expected) in [
        ("1", "1.0", Equal),
        ("1", "10e-1", Equal),
        ("100", "1e2", Equal),
        ("0", "-0.0e5", Equal),
        ("0.1", "0.10000000000000000000000000000000001", Less),
        ("9007199254740993", "9007199254740992", Greater),
        ("1e400", "1e399", Greater),
        ("-1e400", "-1e399", Less),
        ("-5", "3", Less),
        ("0", "1e-400", Less),
        ("0", "-1e-400", Greater),
        ("12", "9", Greater),
        ("0.09", "0.1", Less),
        ("123.45", "123.450", Equal),
    ] {
        assert_eq!(compare(a, b), expected, "{a} against {b}");
        assert_eq!(compare(b, a), expected.reverse(), "{b} against {a}");
    }
    for bad in ["", "01", "+1", ".5", "5.", "1e", "0x10", "1e99999999999", "NaN", "1 "] {
        assert!(Number::parse(bad).is_none(), "{bad}");
    }
}

#[test]
fn integers_have_one_spelling() {
    for (text, expected) in [
        ("12", Some("12")),
        ("12.0", Some("12")),
        ("1.2e1", Some("12")),
        ("-3e2", Some("-300")),
        ("0.0", Some("0")),
        ("1.5", None),
        ("1e300", None),
    ] {
        assert_eq!(Number::parse(text).unwrap().integer().as_deref(), expected, "{text}");
    }
}

#[test]
fn amounts_are_exact_and_bounded() {
    let sum = Amount::parse("0.1").unwrap().plus(Amount::parse("0.2").unwrap()).unwrap();
    assert_eq!(sum, Amount::parse("0.3").unwrap());
    assert_eq!(Amount::parse("12.50").unwrap().to_string(), "12.5");
    assert_eq!(Amount::parse("1e3").unwrap(), Amount::whole(1000));
    for (text, error) in [
        ("-1", AmountError::Negative),
        ("-0.0000001", AmountError::Negative),
        ("1e-19", AmountError::TooFine),
        ("1e21", AmountError::TooLarge),
        ("100000000000000000001", AmountError::TooLarge),
        ("1e400", AmountError::TooLarge),
        ("4e20", AmountError::TooLarge),
        ("999999999999999999999", AmountError::TooLarge),
        // 2¹²⁸ units and a little more: 0.6 if it wrapped around.
        ("340282366920938463464", AmountError::TooLarge),
        ("340282366920938463463.374607431768211456", AmountError::TooLarge),
        ("\"5\"", AmountError::NotANumber),
    ] {
        assert_eq!(Amount::parse(text), Err(error), "{text}");
    }
    assert_eq!(Amount::parse("-0"), Ok(Amount::ZERO));
    assert_eq!(Amount::MAX.plus(Amount::ONE), None);
    assert_eq!(Amount::parse("1e20"), Ok(Amount::MAX));
}

proptest! {
    #[test]
    fn integers_compare_like_integers(a in any::<i64>(), b in any::<i64>()) {
        prop_assert_eq!(compare(&a.to_string(), &b.to_string()), a.cmp(&b));
    }

    #[test]
    fn scaled_spellings_are_equal(a in any::<i32>(), shift in 0usize..6) {
        let zeros = "0".repeat(shift);
        let plain = format!("{a}{zeros}");
        let power = format!("{a}e{shift}");
        if a != 0 {
            prop_assert_eq!(compare(&plain, &power), Ordering::Equal);
            let (left, right) =
                (Number::parse(&plain).unwrap(), Number::parse(&power).unwrap());
            prop_assert_eq!(left.canonical(), right.canonical());
        }
    }

    /// Digits without leading zeros, as long as the largest amount, are ordered like texts.
    #[test]
    fn amounts_near_the_maximum_are_read_or_refused(digits in "[1-9][0-9]{19,21}") {
        let max = "100000000000000000000";
        let fits = (digits.len(), digits.as_str()) <= (max.len(), max);
        match Amount::parse(&digits) {
            Ok(amount) => {
                prop_assert!(fits, "{} is above the maximum", digits);
                prop_assert_eq!(amount.to_string(), digits);
                let over = amount.plus(Amount::MAX);
                prop_assert_eq!(over, None, "a sum above the maximum");
            }
            Err(error) => prop_assert!(!fits && error == AmountError::TooLarge, "{}", digits),
        }
    }

    #[test]
    fn sums_of_cents_are_sums_of_integers(cents in proptest::collection::vec(0u32..100_000, 0..40)) {
        let mut sum = Amount::ZERO;
        for c in &cents {
            sum = sum.plus(Amount::parse(&format!("{}.{:02}", c / 100, c % 100)).unwrap()).unwrap();
        }
        let total: u64 = cents.iter().map(|c| u64::from(*c)).sum();
        prop_assert_eq!(sum, Amount::parse(&format!("{}.{:02}", total / 100, total % 100)).unwrap());
    }
}
