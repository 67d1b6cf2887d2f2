use jiff::{Timestamp, tz::TimeZone};
use proptest::prelude::*;

use super::{Period, Window, seconds_until};

fn period(window: &str, zone: &str, now: &str) -> (String, String) {
    let zone = TimeZone::get(zone).unwrap();
    let Period { start, end } =
        Window::parse(window).unwrap().calendar(now.parse().unwrap(), &zone);
    (start.to_string(), end.to_string())
}

#[test]
fn calendar_windows_are_where_people_expect_them() {
    for (window, zone, now, start, end) in [
        ("minute", "UTC", "2026-01-05T10:20:30Z", "2026-01-05T10:20:00Z", "2026-01-05T10:21:00Z"),
        ("90s", "UTC", "1970-01-01T00:02:00Z", "1970-01-01T00:01:30Z", "1970-01-01T00:03:00Z"),
        (
            "hour",
            "Asia/Kolkata",
            "2026-01-05T10:45:00Z",
            "2026-01-05T10:00:00Z",
            "2026-01-05T11:00:00Z",
        ),
        (
            "day",
            "Europe/Moscow",
            "2026-01-05T22:00:00Z",
            "2026-01-05T21:00:00Z",
            "2026-01-06T21:00:00Z",
        ),
        // 23 and 25 hours long.
        (
            "day",
            "Europe/Berlin",
            "2026-03-29T12:00:00Z",
            "2026-03-28T23:00:00Z",
            "2026-03-29T22:00:00Z",
        ),
        (
            "day",
            "Europe/Berlin",
            "2026-10-25T12:00:00Z",
            "2026-10-24T22:00:00Z",
            "2026-10-25T23:00:00Z",
        ),
        // Midnight itself was skipped here.
        (
            "day",
            "America/Asuncion",
            "2023-10-01T12:00:00Z",
            "2023-10-01T04:00:00Z",
            "2023-10-02T03:00:00Z",
        ),
        ("7d", "UTC", "1970-01-06T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-08T00:00:00Z"),
        (
            "24h",
            "Europe/Moscow",
            "2026-01-05T22:00:00Z",
            "2026-01-05T21:00:00Z",
            "2026-01-06T21:00:00Z",
        ),
        ("minute", "UTC", "1969-12-31T23:59:59Z", "1969-12-31T23:59:00Z", "1970-01-01T00:00:00Z"),
    ] {
        assert_eq!(
            period(window, zone, now),
            (start.to_owned(), end.to_owned()),
            "{window} {zone}"
        );
    }
}

#[test]
fn windows_are_read_strictly() {
    for bad in ["", "s", "5", "0s", "5 m", "-5m", "1.5h", "5M", "minutes", "99999999999d", "４m"] {
        assert_eq!(Window::parse(bad), None, "{bad}");
    }
    assert_eq!(Window::parse("60s"), Some(Window::MINUTE));
    assert_eq!(Window::parse("24h"), Some(Window::DAY));
}

#[test]
fn waiting_is_rounded_up() {
    let now: Timestamp = "2026-01-05T00:00:00.2Z".parse().unwrap();
    assert_eq!(seconds_until(now, "2026-01-05T00:00:12Z".parse().unwrap()), 12);
    assert_eq!(seconds_until(now, "2026-01-05T00:00:00.3Z".parse().unwrap()), 1);
    assert_eq!(seconds_until(now, "2026-01-04T00:00:00Z".parse().unwrap()), 1);
}

proptest! {
    #[test]
    fn windows_tile_the_time_line(
        second in 0i64..4_000_000_000,
        length in prop_oneof![1u64..86_400, (1u64..30).prop_map(|d| d * 86_400)],
        zone in prop_oneof![
            Just("UTC"), Just("Europe/Moscow"), Just("America/Sao_Paulo"), Just("Australia/Lord_Howe"),
            Just("Pacific/Apia"), Just("America/New_York"), Just("Asia/Kathmandu")],
    ) {
        let zone = TimeZone::get(zone).unwrap();
        let window = Window::seconds(length).unwrap();
        let now = Timestamp::from_second(second).unwrap();
        let here = window.calendar(now, &zone);
        prop_assert!(here.start <= now && now < here.end, "{here:?} {now}");
        let next = window.calendar(here.end, &zone);
        prop_assert_eq!(here.end, next.start);
        prop_assert_eq!(window.calendar(here.start, &zone), here);
    }
}
