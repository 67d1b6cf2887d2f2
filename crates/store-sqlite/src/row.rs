//! Converts audit rows to columns and back.
//!
//! Invariant: reading is strict. A column with a value that toolgate would not have written makes
//! the row undecodable, so that no edit can hide behind a lenient conversion.

use std::sync::Arc;

use rusqlite::{CachedStatement, Row as Columns, ToSql, types::ValueRef};
use toolgate_audit::{
    CallId, ChainHead, Decision, Draft, Effect, Hash, Outcome, Row, RowKind, Undecodable, VERSION,
};
use toolgate_store::StoreError;

use crate::{
    error::damaged,
    time::{micros, timestamp},
};

/// Binds a row to the statement `append` and runs it.
pub(crate) fn append(statement: &mut CachedStatement<'_>, row: &Row) -> rusqlite::Result<()> {
    let d = &row.draft;
    let blob = |hash: &Option<Hash>| hash.map(|hash| hash.0);
    let mut bind = ColumnBinder { statement, last: 0 };
    bind.next(Some(number(row.seq)))?;
    bind.next(Some(number(VERSION)))?;
    bind.next(Some(micros(d.time)))?;
    bind.next(Some(d.kind.as_str()))?;
    bind.next(d.call_id.map(|id| id.0))?;
    bind.next(d.method.as_deref())?;
    bind.next(d.grant.as_deref())?;
    bind.next(d.identity.as_deref())?;
    bind.next(d.person.as_deref())?;
    bind.next(d.agent_session.as_deref())?;
    bind.next(d.client.as_deref())?;
    bind.next(d.via.as_deref())?;
    bind.next(d.server.as_deref())?;
    bind.next(d.session_id.as_deref())?;
    bind.next(d.tool.as_deref())?;
    bind.next(blob(&d.fingerprint))?;
    bind.next(d.risk.as_deref())?;
    bind.next(d.decision.map(Decision::as_str))?;
    bind.next(d.error_code.as_deref())?;
    bind.next(d.rule.as_deref())?;
    bind.next(d.policy.as_deref())?;
    bind.next(d.policy_version.map(number))?;
    bind.next(blob(&d.policy_hash))?;
    bind.next(d.argument_keys.as_deref())?;
    bind.next(d.arguments.as_deref())?;
    bind.next(d.counters_json())?;
    bind.next(d.approval_id.as_deref())?;
    bind.next(d.outcome.map(Outcome::as_str))?;
    bind.next(d.effect.map(Effect::as_str))?;
    bind.next(d.upstream_ms.map(number))?;
    bind.next(d.total_ms.map(number))?;
    bind.next(d.message.as_deref())?;
    bind.next(d.count.map(number))?;
    bind.next(Some(row.hash.0))?;
    statement.raw_execute().map(drop)
}

/// Binds values in order. Half of a row is absent: absent values are not bound, because a cached
/// statement starts without bindings.
struct ColumnBinder<'a, 'c> {
    statement: &'a mut CachedStatement<'c>,
    last: usize,
}

impl ColumnBinder<'_, '_> {
    fn next(&mut self, value: Option<impl ToSql>) -> rusqlite::Result<()> {
        self.last += 1;
        value.map_or(Ok(()), |value| self.statement.raw_bind_parameter(self.last, value))
    }
}

/// The columns `seq` and `hash` as stored, and the other columns if they can be decoded.
pub(crate) struct Stored {
    pub(crate) seq: i64,
    pub(crate) hash: Vec<u8>,
    pub(crate) draft: Result<Draft, Undecodable>,
}

/// Reads the columns of a `rows_…` statement.
pub(crate) fn stored(columns: &Columns<'_>) -> Stored {
    let seq = match columns.get_ref(0) {
        Ok(ValueRef::Integer(seq)) => seq,
        _ => -1,
    };
    let hash = match columns.get_ref(33) {
        Ok(ValueRef::Blob(hash)) => hash.to_vec(),
        _ => Vec::new(),
    };
    Stored { seq, hash, draft: ColumnReader { columns, next: 1 }.draft() }
}

impl Stored {
    pub(crate) fn row(self) -> Result<Row, Undecodable> {
        let seq = u64::try_from(self.seq).map_err(|_| Undecodable)?;
        let hash = Hash(self.hash.try_into().map_err(|_| Undecodable)?);
        Ok(Row { seq, draft: self.draft?, hash })
    }
}

/// Reads columns in order.
struct ColumnReader<'a> {
    columns: &'a Columns<'a>,
    next: usize,
}

impl<'a> ColumnReader<'a> {
    fn draft(mut self) -> Result<Draft, Undecodable> {
        if self.number()? != Some(VERSION) {
            return Err(Undecodable);
        }
        let ValueRef::Integer(time) = self.value()? else { return Err(Undecodable) };
        let time = timestamp(time).ok_or(Undecodable)?;
        let kind = self.word(|word| RowKind::parse(word).ok())?.ok_or(Undecodable)?;
        Ok(Draft {
            call_id: self.bytes()?.map(CallId),
            method: self.text()?,
            grant: self.text()?,
            identity: self.text()?,
            person: self.text()?,
            agent_session: self.text()?,
            client: self.text()?,
            via: self.text()?,
            server: self.text()?,
            session_id: self.text()?,
            tool: self.text()?,
            fingerprint: self.bytes()?.map(Hash),
            risk: self.text()?,
            decision: self.word(|word| Decision::parse(word).ok())?,
            error_code: self.text()?,
            rule: self.text()?,
            policy: self.text()?,
            policy_version: self.number()?,
            policy_hash: self.bytes()?.map(Hash),
            argument_keys: self.text()?,
            arguments: self.text()?,
            counters: self.word(Draft::parse_counters)?.unwrap_or_default(),
            approval_id: self.text()?,
            outcome: self.word(|word| Outcome::parse(word).ok())?,
            effect: self.word(|word| Effect::parse(word).ok())?,
            upstream_ms: self.number()?,
            total_ms: self.number()?,
            message: self.text()?,
            count: self.number()?,
            ..Draft::new(kind, time)
        })
    }

    fn value(&mut self) -> Result<ValueRef<'a>, Undecodable> {
        let place = self.next;
        self.next += 1;
        self.columns.get_ref(place).map_err(|_| Undecodable)
    }

    fn word<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Undecodable> {
        match self.value()? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(text) => {
                let text = std::str::from_utf8(text).map_err(|_| Undecodable)?;
                parse(text).map(Some).ok_or(Undecodable)
            }
            _ => Err(Undecodable),
        }
    }

    fn text(&mut self) -> Result<Option<Arc<str>>, Undecodable> {
        self.word(|text| Some(text.into()))
    }

    fn number(&mut self) -> Result<Option<u64>, Undecodable> {
        match self.value()? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(number) => u64::try_from(number).map(Some).map_err(|_| Undecodable),
            _ => Err(Undecodable),
        }
    }

    fn bytes<const N: usize>(&mut self) -> Result<Option<[u8; N]>, Undecodable> {
        match self.value()? {
            ValueRef::Null => Ok(None),
            ValueRef::Blob(bytes) => bytes.try_into().map(Some).map_err(|_| Undecodable),
            _ => Err(Undecodable),
        }
    }
}

/// SQLite's integers are signed; sequence numbers never get near the maximum.
pub(crate) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The head of a chain, from stored columns.
pub(crate) fn to_head(seq: i64, hash: &[u8]) -> Result<ChainHead, StoreError> {
    let seq = u64::try_from(seq).map_err(|_| damaged("audit.seq"))?;
    let hash = Hash(hash.try_into().map_err(|_| damaged("audit.hash"))?);
    Ok(ChainHead { seq, hash })
}
