//! The writing side: one transaction at a time.

use std::{
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, ToSql, params};
use toolgate_audit::{CallId, Checkpoint, Draft, Hash, Head, Kind, Row};
use toolgate_policy::{
    Amount, Claim, Ended, Ownership, Period, Reservation, Take, Taken, Unavailable, Usage, Window,
    Yielded,
};
use toolgate_store::{
    Backend, Change, Fault, FaultKind,
    backend::{Abandoned, Changed, GiveBack, Reader, State, Transaction, Work},
    failpoint::{Point, reach},
};

use crate::{
    Durability, SyncFile,
    fault::{OrFault as _, damaged},
    owner::Owner,
    read::{self, Reading},
    row::{self, number},
    schema, sql,
    sync::{Syncer, Watch},
    things,
    time::{mark, micros},
    usage::{Used, seconds},
};

/// At most so many abandoned calls are ended in one transaction.
const ABANDONED: i64 = 1_000;

/// A database that is written to.
pub(crate) struct Sqlite {
    folder: PathBuf,
    durability: Durability,
    /// Absent after a failure that a new connection may mend.
    connection: Option<Connection>,
    owner: Owner,
    watch: Arc<Watch>,
    syncer: Option<JoinHandle<()>>,
    /// What this process's open calls took, to give it back.
    receipts: HashMap<CallId, Receipt>,
}

/// What a call took.
struct Receipt {
    at: Timestamp,
    taken: Vec<(String, Take)>,
    /// When the call had been seen before, if it had.
    seen_before: Option<(String, Timestamp, Window)>,
}

impl Sqlite {
    pub(crate) fn open(
        folder: &Path,
        durability: Durability,
        owner: u64,
        sync: Arc<SyncFile>,
    ) -> Result<Self, Fault> {
        let owner = Owner::new(folder, owner)?;
        let connection = Some(schema::open(folder, durability)?);
        let watch = Arc::new(Watch::default());
        let folder = folder.to_owned();
        let thread = (folder.clone(), Arc::clone(&watch));
        let syncer = Syncer { folder: thread.0, durability, watch: thread.1, sync }.start()?;
        let (syncer, receipts) = (Some(syncer), HashMap::new());
        Ok(Self { folder, durability, connection, owner, watch, syncer, receipts })
    }

    fn connection(&mut self) -> Result<&Connection, Fault> {
        if self.connection.is_none() {
            self.connection = Some(schema::open(&self.folder, self.durability)?);
        }
        self.connection.as_ref().ok_or_else(|| damaged("database"))
    }

    fn run(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        self.connection()?;
        let connection = self.connection.as_ref().ok_or_else(|| damaged("database"))?;
        execute(connection, "BEGIN IMMEDIATE", &[])?;
        let mut transaction = Writing {
            connection,
            owner: &self.owner,
            watch: &self.watch,
            receipts: &self.receipts,
            opened: Vec::new(),
            settled: Vec::new(),
            wrote: false,
        };
        work(&mut transaction)?;
        let Writing { opened, settled, wrote, .. } = transaction;
        reach(Point::BeforeCommit);
        execute(connection, "COMMIT", &[])?;
        reach(Point::AfterCommit);
        if wrote {
            self.watch.written();
        }
        self.receipts.extend(opened);
        for call in settled {
            self.receipts.remove(&call);
        }
        Ok(())
    }
}

impl Backend for Sqlite {
    fn transact(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        let result = self.run(work);
        if let Err(fault) = &result {
            let connection = self.connection.take_if(|connection| {
                // Some failures have rolled back already.
                let stuck =
                    !connection.is_autocommit() && connection.execute_batch("ROLLBACK").is_err();
                stuck || !matches!(fault.kind, FaultKind::Full | FaultKind::Busy)
            });
            drop(connection);
        }
        result
    }

    fn is_quick(&self) -> bool {
        match self.durability {
            Durability::Process => true,
            Durability::Power => false,
        }
    }

    fn reader(&self) -> Result<Box<dyn Reader>, Fault> {
        Ok(Box::new(Reading(schema::open_reader(&self.folder)?)))
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.watch.end();
        // It may have the database open too, and who closes it last tidies it up.
        drop(self.syncer.take().map(JoinHandle::join));
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// One transaction.
struct Writing<'a> {
    connection: &'a Connection,
    owner: &'a Owner,
    watch: &'a Watch,
    receipts: &'a HashMap<CallId, Receipt>,
    opened: Vec<(CallId, Receipt)>,
    settled: Vec<CallId>,
    wrote: bool,
}

/// Runs a statement and says how many rows it changed.
pub(crate) fn execute(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
) -> Result<usize, Fault> {
    connection.prepare_cached(sql).or_fault()?.execute(values).or_fault()
}

impl Writing<'_> {
    fn execute(&mut self, sql: &str, values: &[&dyn ToSql]) -> Result<usize, Fault> {
        self.wrote = true;
        execute(self.connection, sql, values)
    }

    fn used(&self) -> Used<'_> {
        Used(self.connection)
    }

    /// Takes one share; answers what the mark of a repeat was before.
    fn take(
        &mut self,
        call: CallId,
        key: &str,
        take: &Take,
        now: Timestamp,
    ) -> Result<Option<(Timestamp, Window)>, Fault> {
        match *take {
            Take::Calendar { period, amount, .. } => {
                let stored = self.used().counter(key)?;
                let stored = stored.filter(|(stored, _)| stored.start >= period.start);
                let (period, used) = stored.unwrap_or((period, Amount::ZERO));
                self.set_counter(key, period, used.plus(amount).unwrap_or(Amount::MAX))?;
            }
            Take::Sliding { window, amount, .. } => {
                self.execute(sql::SLIDING_FORGET, &[&key, &micros(window.before(now))])?;
                let (at, until) = (micros(now), micros(window.after(now)));
                let amount = amount.to_string();
                self.execute(sql::SLIDING_ADD, &[&key, &at, &call.0, &until, &amount])?;
            }
            Take::InFlight { .. } => {
                self.execute(sql::FLIGHT_ADD, &[&key, &call.0])?;
            }
            Take::Seen { within } => {
                let before = self.used().seen(key)?;
                let longest = before.map_or(within, |(_, before)| before.max(within));
                self.execute(sql::SEEN_WRITE, &[&key, &micros(now), &seconds(longest)])?;
                return Ok(before);
            }
        }
        Ok(None)
    }

    fn give_back(&mut self, call: CallId, receipt: &Receipt) -> Result<(), Fault> {
        for (key, take) in &receipt.taken {
            match *take {
                Take::Calendar { period, amount, .. } => {
                    if let Some((stored, used)) = self.used().counter(key)?
                        && stored.start == period.start
                    {
                        self.set_counter(key, stored, used.minus(amount))?;
                    }
                }
                Take::Sliding { .. } => {
                    let at = micros(receipt.at);
                    self.execute(sql::SLIDING_BACK, &[key, &at, &call.0])?;
                }
                Take::InFlight { .. } => {}
                Take::Seen { .. } => {
                    self.execute(sql::SEEN_BACK, &[key])?;
                }
            }
        }
        if let Some((key, at, within)) = &receipt.seen_before {
            self.execute(sql::SEEN_WRITE, &[key, &micros(*at), &seconds(*within)])?;
        }
        Ok(())
    }

    /// Open calls, with their intents.
    fn open_calls(&self, sql: &str, of: i64) -> Result<Vec<Abandoned>, Fault> {
        let mut statement = self.connection.prepare_cached(sql).or_fault()?;
        let calls = statement
            .query_map(params![of, ABANDONED], |row| Ok((row.get(0)?, row.get(1)?)))
            .or_fault()?;
        let calls: Vec<([u8; 16], i64)> = calls.collect::<Result<_, _>>().or_fault()?;
        let with_intent = |(call, seq)| {
            let mut statement = self.connection.prepare_cached(sql::ROW_AT).or_fault()?;
            let row = statement.query_row([seq], |row| Ok(row::stored(row))).optional();
            let intent = row.or_fault()?.and_then(|stored| stored.draft.ok());
            // An intent that was tampered with still ends; `verify` tells of the tampering.
            let none = || Draft::new(Kind::Intent, Timestamp::UNIX_EPOCH);
            Ok(Abandoned { call_id: CallId(call), intent: intent.unwrap_or_else(none) })
        };
        calls.into_iter().map(with_intent).collect()
    }

    fn set_counter(&mut self, key: &str, period: Period, used: Amount) -> Result<(), Fault> {
        let (start, until, used) = (micros(period.start), micros(period.end), used.to_string());
        self.execute(sql::COUNTER_WRITE, &[&key, &start, &until, &used]).map(drop)
    }
}

impl Transaction for Writing<'_> {
    fn state(&mut self) -> Result<State, Fault> {
        let mut statement = self.connection.prepare_cached(sql::STATE).or_fault()?;
        let (at, generation): (i64, i64) =
            statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).or_fault()?;
        let head = read::head(self.connection)?;
        let checkpoint = read::last_checkpoint(self.connection)?;
        Ok(State {
            head,
            mark: mark(at),
            generation: u64::try_from(generation).unwrap_or_default(),
            checkpoint: checkpoint.map(|checkpoint| (checkpoint.seq, checkpoint.time)),
        })
    }

    fn may_admit(&self) -> Result<(), Fault> {
        self.watch.may_admit()
    }

    fn append(&mut self, row: &Row) -> Result<(), Fault> {
        self.wrote = true;
        let mut statement = self.connection.prepare_cached(sql::APPEND).or_fault()?;
        row::append(&mut statement, row).or_fault()
    }

    fn set_mark(&mut self, mark: Timestamp) -> Result<(), Fault> {
        self.execute(sql::SET_MARK, &[&micros(mark)]).map(drop)
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Fault> {
        let Checkpoint { seq, hash, time, signature } = checkpoint;
        let signature = signature.as_slice();
        let values: [&dyn ToSql; 4] = [&number(*seq), &hash.0, &micros(*time), &signature];
        self.execute(sql::CHECKPOINT_ADD, &values).map(drop)
    }

    fn open(
        &mut self,
        call: CallId,
        seq: u64,
        reservations: &[Reservation],
        now: Timestamp,
    ) -> Result<(), Fault> {
        let mut receipt = Receipt { at: now, taken: Vec::new(), seen_before: None };
        for Reservation { key, take, .. } in reservations {
            let before = self.take(call, key, take, now)?;
            if let (Some((at, within)), None) = (before, &receipt.seen_before) {
                receipt.seen_before = Some((key.clone(), at, within));
            }
            receipt.taken.push((key.clone(), take.clone()));
        }
        self.execute(sql::OPEN_ADD, &[&call.0, &self.owner.id, &number(seq)])?;
        self.opened.push((call, receipt));
        Ok(())
    }

    fn settle(&mut self, call: CallId, back: GiveBack) -> Result<(), Fault> {
        if self.execute(sql::OPEN_END, &[&call.0])? == 0 {
            return Ok(());
        }
        let receipts = self.receipts;
        let receipt = receipts.get(&call);
        let flies = |receipt: &Receipt| {
            receipt.taken.iter().any(|(_, take)| matches!(take, Take::InFlight { .. }))
        };
        if receipt.is_none_or(flies) {
            self.execute(sql::FLIGHT_END, &[&call.0])?;
        }
        if let (GiveBack::All, Some(receipt)) = (back, receipt) {
            self.give_back(call, receipt)?;
        }
        self.settled.push(call);
        Ok(())
    }

    fn own(
        &mut self,
        yielded: &Yielded,
        grant: &str,
        identity: Option<&str>,
        now: Timestamp,
    ) -> Result<Ownership, Fault> {
        let Yielded { server, kind, value, keep, shared, by_identity } = yielded;
        let until = keep.after(now);
        let identity = identity.filter(|_| *by_identity).map(str::to_owned);
        let known = self.used().owned(server, kind, value)?.filter(|owned| owned.until > now);
        let (mut grants, owner, until) = match known {
            None => (Vec::new(), identity, until),
            Some(known) => {
                let same = identity.is_some() && known.identity == identity;
                let mine = known.grants.iter().any(|known| known == grant) || same;
                if !mine && !shared {
                    return Ok(Ownership::Conflict);
                }
                (known.grants, known.identity, known.until.max(until))
            }
        };
        if !grants.iter().any(|known| known == grant) {
            grants.push(grant.to_owned());
        }
        let grants = things::list(&grants)?;
        let until = micros(until);
        self.execute(sql::OWNED_WRITE, &[server, kind, value, &grants, &owner, &until])?;
        Ok(Ownership::Recorded)
    }

    fn end(&mut self, ended: &Ended) -> Result<(), Fault> {
        self.execute(sql::OWNED_END, &[&ended.server, &ended.kind, &ended.value]).map(drop)
    }

    fn change(&mut self, change: &Change, now: Timestamp) -> Result<Changed, Fault> {
        self.wrote = true;
        let changed = things::change(self.connection, change, now)?;
        if changed == Changed::Made && change.is_setup() {
            self.execute(sql::GROW_GENERATION, &[])?;
        }
        Ok(changed)
    }

    fn touch(&mut self, grant: &str, now: Timestamp) -> Result<(), Fault> {
        self.execute(sql::GRANT_TOUCH, &[&grant, &micros(now)]).map(drop)
    }

    fn abandoned(&mut self) -> Result<Vec<Abandoned>, Fault> {
        let mut statement = self.connection.prepare_cached(sql::OPEN_OWNERS).or_fault()?;
        let owners = statement.query_map([self.owner.id], |row| row.get(0)).or_fault()?;
        let owners: Vec<i64> = owners.collect::<Result<_, _>>().or_fault()?;
        let mut abandoned = Vec::new();
        for owner in owners.into_iter().filter(|owner| self.owner.is_dead(*owner)) {
            abandoned.extend(self.open_calls(sql::OPEN_OF_OWNER, owner)?);
        }
        Ok(abandoned)
    }

    fn park(&mut self, call: CallId, now: Timestamp) -> Result<(), Fault> {
        // Without its receipt nothing can be given back.
        self.settled.push(call);
        self.execute(sql::OPEN_PARK, &[&call.0, &micros(now)]).map(drop)
    }

    fn resume(&mut self, call: CallId) -> Result<Option<u64>, Fault> {
        self.wrote = true;
        let mut statement = self.connection.prepare_cached(sql::OPEN_RESUME).or_fault()?;
        let seq = statement.query_row(params![call.0, self.owner.id], |row| row.get(0)).optional();
        let seq: Option<i64> = seq.or_fault()?;
        Ok(seq.map(|seq| u64::try_from(seq).unwrap_or_default()))
    }

    fn waiting_since(&mut self, then: Timestamp) -> Result<Vec<Abandoned>, Fault> {
        self.open_calls(sql::OPEN_WAITING, micros(then))
    }

    fn prune(&mut self, now: Timestamp) -> Result<(), Fault> {
        let now = micros(now);
        for sql in [sql::COUNTER_PRUNE, sql::SLIDING_PRUNE, sql::SEEN_PRUNE, sql::OWNED_PRUNE] {
            self.execute(sql, &[&now])?;
        }
        Ok(())
    }
}

impl Usage for Writing<'_> {
    fn used(&self, counter: &str, period: Period) -> Result<Amount, Unavailable> {
        Usage::used(&Used(self.connection), counter, period)
    }
    fn taken(&self, counter: &str, after: Timestamp) -> Result<Vec<Taken>, Unavailable> {
        Used(self.connection).taken(counter, after)
    }
    fn in_flight(&self, counter: &str) -> Result<u64, Unavailable> {
        Used(self.connection).in_flight(counter)
    }
    fn last_admitted(&self, call: &str) -> Result<Option<Timestamp>, Unavailable> {
        Used(self.connection).last_admitted(call)
    }
    fn owns(&self, claim: &Claim<'_>) -> Result<bool, Unavailable> {
        Used(self.connection).owns(claim)
    }
}

/// The head of a chain, from what is stored.
pub(crate) fn to_head(seq: i64, hash: &[u8]) -> Result<Head, Fault> {
    let seq = u64::try_from(seq).map_err(|_| damaged("audit.seq"))?;
    let hash = Hash(hash.try_into().map_err(|_| damaged("audit.hash"))?);
    Ok(Head { seq, hash })
}
