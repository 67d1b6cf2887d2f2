//! Reads counters from the database, for the writer inside its transaction and for the readers.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use toolgate_policy::{Amount, Claim, Period, Taken, Unavailable, Usage, Window};
use toolgate_store::StoreError;

use crate::{
    error::{OrStoreError as _, damaged},
    row::number,
    sql,
    time::{micros, timestamp},
};

/// Counters read through a connection.
pub(crate) struct SqliteUsage<'a>(pub(crate) &'a Connection);

/// The owner of a value.
pub(crate) struct OwnedValue {
    pub(crate) grants: Vec<String>,
    pub(crate) identity: Option<String>,
    pub(crate) until: Timestamp,
}

impl SqliteUsage<'_> {
    /// A calendar counter: its current window and the amount used.
    pub(crate) fn counter(&self, key: &str) -> Result<Option<(Period, Amount)>, StoreError> {
        let mut statement = self.0.prepare_cached(sql::COUNTER_READ).or_store_error()?;
        let found = statement.query_row([key], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
        });
        let Some((start, end, used)) = found.optional().or_store_error()? else { return Ok(None) };
        let period = || Some(Period { start: timestamp(start)?, end: timestamp(end)? });
        let period = period().ok_or_else(|| damaged("counter"))?;
        Ok(Some((period, amount(&used)?)))
    }

    fn sliding(&self, key: &str, after: Timestamp) -> Result<Vec<Taken>, StoreError> {
        let mut statement = self.0.prepare_cached(sql::SLIDING_READ).or_store_error()?;
        let mut rows = statement.query(params![key, micros(after)]).or_store_error()?;
        let mut log = Vec::new();
        while let Some(row) = rows.next().or_store_error()? {
            let at = timestamp(row.get(0).or_store_error()?).ok_or_else(|| damaged("sliding"))?;
            let text = row.get_ref(1).or_store_error()?;
            let text = text.as_str().map_err(|_| damaged("sliding"))?;
            log.push(Taken { at, amount: amount(text)? });
        }
        Ok(log)
    }

    fn flights(&self, key: &str) -> Result<u64, StoreError> {
        let mut statement = self.0.prepare_cached(sql::FLIGHT_COUNT).or_store_error()?;
        let count: i64 = statement.query_row([key], |row| row.get(0)).or_store_error()?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// When a call was last admitted, and for how long that is relevant.
    pub(crate) fn seen(&self, key: &str) -> Result<Option<(Timestamp, Window)>, StoreError> {
        let mut statement = self.0.prepare_cached(sql::SEEN_READ).or_store_error()?;
        let found = statement
            .query_row([key], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, u32>(1)?)))
            .optional()
            .or_store_error()?;
        let Some((at, within)) = found else { return Ok(None) };
        let both = || Some((timestamp(at)?, Window::seconds(u64::from(within))?));
        both().map(Some).ok_or_else(|| damaged("seen"))
    }

    pub(crate) fn owned(
        &self,
        server: &str,
        kind: &str,
        value: &str,
    ) -> Result<Option<OwnedValue>, StoreError> {
        let mut statement = self.0.prepare_cached(sql::OWNED_READ).or_store_error()?;
        let found = statement
            .query_row([server, kind, value], |row| {
                Ok((row.get::<_, String>(0)?, row.get(1)?, row.get::<_, i64>(2)?))
            })
            .optional()
            .or_store_error()?;
        let Some((grants, identity, until)) = found else { return Ok(None) };
        let grants = serde_json::from_str(&grants).map_err(|_| damaged("owned"))?;
        let until = timestamp(until).ok_or_else(|| damaged("owned"))?;
        Ok(Some(OwnedValue { grants, identity, until }))
    }
}

impl Usage for SqliteUsage<'_> {
    fn used(&self, counter: &str, period: Period) -> Result<Amount, Unavailable> {
        Ok(used_of(self.counter(counter).map_err(|_| Unavailable)?, period))
    }

    fn taken(&self, counter: &str, after: Timestamp) -> Result<Vec<Taken>, Unavailable> {
        self.sliding(counter, after).map_err(|_| Unavailable)
    }

    fn in_flight(&self, counter: &str) -> Result<u64, Unavailable> {
        self.flights(counter).map_err(|_| Unavailable)
    }

    fn last_admitted(&self, call: &str) -> Result<Option<Timestamp>, Unavailable> {
        Ok(self.seen(call).map_err(|_| Unavailable)?.map(|(at, _)| at))
    }

    fn owns(&self, claim: &Claim<'_>) -> Result<bool, Unavailable> {
        let owned = self.owned(claim.server, claim.kind, claim.value).map_err(|_| Unavailable)?;
        Ok(owned.is_some_and(|owned| {
            let same = owned.identity.is_some() && owned.identity.as_deref() == claim.identity;
            let mine = owned.grants.iter().any(|grant| grant == claim.grant);
            owned.until > claim.now && (mine || same)
        }))
    }
}

/// The amount of a calendar counter used in a window.
pub(crate) fn used_of(stored: Option<(Period, Amount)>, period: Period) -> Amount {
    match stored {
        Some((stored, used)) if stored.start >= period.start => used,
        _ => Amount::ZERO,
    }
}

/// The length of a window, as stored.
pub(crate) fn seconds(window: Window) -> i64 {
    number(u64::from(window.as_seconds()))
}

fn amount(text: &str) -> Result<Amount, StoreError> {
    Amount::parse(text).map_err(|_| damaged("amount"))
}
