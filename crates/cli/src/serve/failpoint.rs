//! `TOOLGATE_FAILPOINT=POINT:N`, only in builds with debug assertions: this process kills itself when
//! a call reaches that point for the N-th time. With `POINT:block` each thread that reaches that point
//! blocks there.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use toolgate_os::process::kill_this;
use toolgate_store::failpoint::{self, Failpoint};

const VARIABLE: &str = "TOOLGATE_FAILPOINT";

/// Arms the failpoint of the environment.
pub(super) fn arm() -> anyhow::Result<()> {
    let Ok(text) = std::env::var(VARIABLE) else { return Ok(()) };
    if let Some(point) = text.strip_suffix(":block").and_then(point) {
        failpoint::arm(Box::new(move |reached| {
            if reached == point {
                tracing::warn!(%point, "thread blocked at failpoint");
                loop {
                    std::thread::park();
                }
            }
        }));
        return Ok(());
    }
    let (fatal, left) = parse(&text).with_context(|| {
        let points = Failpoint::ALL.map(Failpoint::as_str).join(", ");
        format!("`{VARIABLE}` is `{text}`: it must be POINT:N, and a point is one of {points}")
    })?;
    tracing::warn!(point = %fatal, left, "failpoint armed: this process will kill itself");
    let left = AtomicU64::new(left);
    failpoint::arm(Box::new(move |point| {
        let due = point == fatal && left.fetch_sub(1, Ordering::Relaxed) == 1;
        if due {
            kill_this();
        }
    }));
    Ok(())
}

fn point(name: &str) -> Option<Failpoint> {
    Failpoint::ALL.into_iter().find(|point| point.as_str() == name)
}

fn parse(text: &str) -> Option<(Failpoint, u64)> {
    let (name, count) = text.split_once(':')?;
    Some((point(name)?, count.parse().ok().filter(|count| *count > 0)?))
}
