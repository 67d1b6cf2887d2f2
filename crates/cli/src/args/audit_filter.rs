//! Filters of audit rows, shared by `audit list` and `audit export`.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use thiserror::Error;
use toolgate_audit::{Decision, RowKind, UnknownValue};
use toolgate_store::RowQuery;

#[derive(Debug, clap::Args)]
pub(crate) struct FilterArgs {
    /// Only rows of this time or later: a time, a date, or an age such as `2h`
    #[arg(long, value_name = "TIME", value_parser = moment, help_heading = FILTERS)]
    pub(crate) since: Option<Moment>,
    /// Only rows before this time: a time, a date, or an age such as `2h`
    #[arg(long, value_name = "TIME", value_parser = moment, help_heading = FILTERS)]
    pub(crate) until: Option<Moment>,
    /// Only rows of this kind
    #[arg(long, value_name = "KIND", value_parser = kind(), help_heading = FILTERS)]
    pub(crate) kind: Option<RowKind>,
    /// Only rows of the grant with this label
    #[arg(long, value_name = "LABEL", help_heading = FILTERS)]
    pub(crate) grant: Option<String>,
    /// Only rows of what this person did
    #[arg(long, value_name = "NAME", help_heading = FILTERS)]
    pub(crate) person: Option<String>,
    /// Only rows of this server; `sessions` is all sessions
    #[arg(long, value_name = "NAME", help_heading = FILTERS)]
    pub(crate) server: Option<String>,
    /// Only rows of the session with this id
    #[arg(long, value_name = "ID", help_heading = FILTERS)]
    pub(crate) session: Option<String>,
    /// Only rows of this tool
    #[arg(long, value_name = "NAME", help_heading = FILTERS)]
    pub(crate) tool: Option<String>,
    /// Only rows with this decision
    #[arg(long, value_name = "DECISION", value_parser = decision(), help_heading = FILTERS)]
    pub(crate) decision: Option<Decision>,
    /// Only rows with this error code, such as `rate_limited`
    #[arg(long, value_name = "CODE", help_heading = FILTERS)]
    pub(crate) code: Option<String>,
}

const FILTERS: &str = "Filters";

/// A time, absolute or relative to now.
#[derive(Debug, Clone)]
pub(crate) enum Moment {
    At(Timestamp),
    Ago(Span),
}

/// Why a time is not valid.
#[derive(Debug, Error)]
#[error(
    "write a time (2026-01-05T12:00:00Z), a date (2026-01-05, 00:00 UTC) or an age (30m, 2h, 7d)"
)]
pub(crate) struct NotAMoment;

impl FilterArgs {
    /// The query without order and limit.
    pub(crate) fn query(&self, now: Timestamp) -> Result<RowQuery, NotAMoment> {
        let at = |moment: &Option<Moment>| moment.as_ref().map(|it| it.at(now)).transpose();
        Ok(RowQuery {
            since: at(&self.since)?,
            until: at(&self.until)?,
            kind: self.kind,
            grant: self.grant.clone(),
            person: self.person.clone(),
            server: self.server.clone(),
            session: self.session.clone(),
            tool: self.tool.clone(),
            decision: self.decision,
            code: self.code.clone(),
            ..RowQuery::default()
        })
    }
}

impl Moment {
    fn at(&self, now: Timestamp) -> Result<Timestamp, NotAMoment> {
        match self {
            Self::At(at) => Ok(*at),
            Self::Ago(span) => {
                let then = now.to_zoned(TimeZone::UTC).checked_sub(*span);
                then.map(|then| then.timestamp()).map_err(|_| NotAMoment)
            }
        }
    }
}

fn moment(text: &str) -> Result<Moment, NotAMoment> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(Moment::At(at));
    }
    if let Some(day) = text.parse::<Date>().ok().filter(|_| !text.contains(['T', ' '])) {
        let midnight = day.to_datetime(Time::midnight()).to_zoned(TimeZone::UTC);
        return midnight.map(|it| Moment::At(it.timestamp())).map_err(|_| NotAMoment);
    }
    match text.parse::<Span>() {
        Ok(span) if span.is_positive() && !text.starts_with(['P', 'p']) => Ok(Moment::Ago(span)),
        _ => Err(NotAMoment),
    }
}

fn kind() -> impl clap::builder::TypedValueParser<Value = RowKind> {
    let names = RowKind::ALL.iter().map(|kind| kind.as_str());
    PossibleValuesParser::new(names)
        .try_map(|name| RowKind::parse(&name).map_err(|UnknownValue| std::fmt::Error))
}

fn decision() -> impl clap::builder::TypedValueParser<Value = Decision> {
    let names = Decision::ALL.iter().map(|decision| decision.as_str());
    PossibleValuesParser::new(names)
        .try_map(|name| Decision::parse(&name).map_err(|UnknownValue| std::fmt::Error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_ages() {
        let now: Timestamp = "2026-11-18T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("2026-01-05T12:00:00Z", "2026-01-05T12:00:00Z"),
            ("2026-01-05T12:00:00+03:00", "2026-01-05T09:00:00Z"),
            ("2026-01-05", "2026-01-05T00:00:00Z"),
            ("30m", "2026-11-18T11:30:00Z"),
            ("2h", "2026-11-18T10:00:00Z"),
            ("7d", "2026-11-11T12:00:00Z"),
        ] {
            let at = moment(text).unwrap().at(now).unwrap();
            assert_eq!(at.to_string(), expected, "{text}");
        }
        for wrong in ["", "yesterday", "2026-13-01", "5", "-2h", "12:00"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }
}
