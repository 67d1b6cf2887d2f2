//! Geometry of the charts; templates draw them as SVG.
//!
//! Invariant: pure. Coordinates are whole numbers within the box of the chart.

use crate::activity::Minute;

/// The box of a chart.
pub(crate) const WIDTH: u64 = 600;
pub(crate) const HEIGHT: u64 = 140;
/// How wide one minute is.
const STEP: u64 = WIDTH / 60;

/// One part of a bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) width: u64,
    pub(crate) height: u64,
    /// `allow`, `hold` or `deny`.
    pub(crate) class: &'static str,
    pub(crate) value: u64,
}

/// Calls per minute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bars {
    pub(crate) bars: Vec<Bar>,
    /// The top of the scale.
    pub(crate) top: u64,
}

/// Latency per minute: points of two lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) p50: String,
    pub(crate) p99: String,
    /// The top of the scale, in milliseconds.
    pub(crate) top: u64,
    /// The newest values.
    pub(crate) last_p50: Option<u64>,
    pub(crate) last_p99: Option<u64>,
}

/// Stacked bars.
pub(crate) fn bars(minutes: &[Minute]) -> Bars {
    let top = rounded(minutes.iter().map(Minute::calls).max().unwrap_or_default());
    let mut bars = Vec::new();
    for (place, minute) in (0u64..).zip(minutes) {
        let mut below = 0;
        for (class, value) in
            [("allow", minute.allowed), ("hold", minute.held), ("deny", minute.denied)]
        {
            if value == 0 {
                continue;
            }
            let (from, to) = (scaled(below, top), scaled(below + value, top));
            below += value;
            let height = (to - from).max(1);
            let y = HEIGHT.saturating_sub(to.max(1));
            bars.push(Bar { x: place * STEP + 1, y, width: STEP - 2, height, class, value });
        }
    }
    Bars { bars, top }
}

/// Two lines; minutes without calls are left out.
pub(crate) fn lines(minutes: &[Minute]) -> Lines {
    let of = |share| minutes.iter().map(|it| it.percentile(share)).collect::<Vec<_>>();
    let (p50, p99) = (of(50), of(99));
    let top = rounded(p99.iter().flatten().copied().max().unwrap_or_default());
    let points = |values: &[Option<u64>]| {
        let point = |(place, value): (u64, &Option<u64>)| {
            let y = HEIGHT.saturating_sub(scaled((*value)?, top));
            Some(format!("{},{y}", place * STEP + STEP / 2))
        };
        let mut points: Vec<String> = (0u64..).zip(values).filter_map(point).collect();
        // A line of one point is drawn as a dot.
        if let [only] = points.as_slice() {
            points.push(only.clone());
        }
        points.join(" ")
    };
    let last = |values: &[Option<u64>]| values.iter().rev().flatten().next().copied();
    Lines { p50: points(&p50), p99: points(&p99), top, last_p50: last(&p50), last_p99: last(&p99) }
}

fn scaled(value: u64, top: u64) -> u64 {
    (value * (HEIGHT - 4)).checked_div(top).unwrap_or_default()
}

/// The next of 1, 2, 5, 10, 20, 50, …
fn rounded(most: u64) -> u64 {
    let mut step = 1u64;
    loop {
        for factor in [1, 2, 5] {
            let top = step.saturating_mul(factor);
            if top >= most || top == u64::MAX {
                return top;
            }
        }
        step = step.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(allowed: u64, denied: u64) -> Minute {
        Minute::of(allowed, denied)
    }

    #[test]
    fn bars_are_stacked_within_the_box() {
        let chart = bars(&[minute(3, 1), minute(0, 0), minute(0, 10)]);
        assert_eq!(chart.top, 10);
        let shown: Vec<_> = chart.bars.iter().map(|bar| (bar.x, bar.class, bar.value)).collect();
        assert_eq!(shown, [(1, "allow", 3), (1, "deny", 1), (21, "deny", 10)]);
        for bar in &chart.bars {
            assert!(bar.y + bar.height <= HEIGHT && bar.height > 0, "{bar:?}");
        }
        let [allow, deny, _] = chart.bars.as_slice() else { panic!("{chart:?}") };
        assert_eq!(deny.y + deny.height, allow.y, "one begins where the other ends");
    }

    #[test]
    fn an_empty_hour_has_no_bars_and_no_lines() {
        let empty = vec![Minute::default(); 60];
        assert!(bars(&empty).bars.is_empty());
        assert_eq!(lines(&empty), Lines { top: 1, ..Lines::default() });
    }

    #[test]
    fn scales_are_round() {
        let tops = [0, 1, 3, 7, 30, 501, u64::MAX].map(rounded);
        assert_eq!(tops, [1, 1, 5, 10, 50, 1_000, u64::MAX]);
    }
}
