//! Vetting: a call is judged by the newest list of the connection that it is sent over.
//!
//! A server that runs once per agent may list different tools in each process. A link therefore
//! keeps the definitions that its own connection listed, and lists before the first call over a new
//! connection, and before the first call after the server reported a change.
//!
//! Invariant: no call is sent over a connection whose tools were not listed. If they cannot be
//! listed, the call fails and was not sent.
//!
//! Start at [`Link::vet`] and [`Link::check_usable`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use toolgate_admission::list_kind::Kind;
use toolgate_json::{Edit, items, text};

use super::Link;
use super::handshake::LiveChannel;
use super::waiting::AgentWaiter;
use crate::failure::Failure;
use crate::lists::{List, Unreadable, only};
use crate::pins::{Facts, Meeting, Met, Reason, ToolList, mark_ambiguous};

/// How many definitions a link remembers that its newest list does not have.
const MAX_UNLISTED: usize = 1_000;

/// What a link knows of the tools of its connection.
#[derive(Default)]
pub(super) struct Vetting {
    tools: RwLock<KnownTools>,
    /// How many times they have changed.
    changes: AtomicU64,
    /// How many times a new list became necessary.
    wanted: AtomicU64,
    /// The connection of the last complete list, and how many times one was necessary then.
    done: Mutex<Option<Listed>>,
    /// One list is fetched at a time.
    turn: tokio::sync::Mutex<()>,
}

/// A tool was not quarantined, as long as neither the definitions of its link nor the pins change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usable {
    changes: u64,
    revision: u64,
}

/// The newest definition of each tool.
#[derive(Default)]
struct KnownTools {
    /// The last complete list; links share it.
    list: Arc<ToolList>,
    /// Tools of pages that were listed after it, and quarantined ones that it does not have.
    others: HashMap<Box<str>, Arc<Facts>>,
}

impl KnownTools {
    fn get(&self, own: &str) -> Option<&Arc<Facts>> {
        // Most links have no others.
        let other = if self.others.is_empty() { None } else { self.others.get(own) };
        other.or_else(|| self.list.facts(own))
    }
}

/// When a complete list was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Listed {
    epoch: u64,
    wanted: u64,
}

impl Vetting {
    /// How many times a new list became necessary.
    pub(super) fn wanted(&self) -> u64 {
        self.wanted.load(Ordering::Acquire)
    }

    /// The state in which a list is requested now, over the connection of `epoch`.
    fn asks(&self, epoch: u64) -> Listed {
        Listed { epoch, wanted: self.wanted() }
    }

    fn is_current(&self, epoch: u64) -> bool {
        let now = self.asks(epoch);
        self.done.lock().is_some_and(|done| done.epoch == epoch && done.wanted >= now.wanted)
    }

    fn set_done(&self, listed: Listed) {
        let mut done = self.done.lock();
        let is_newer = |known: &Listed| {
            known.epoch > listed.epoch
                || (known.epoch == listed.epoch && known.wanted > listed.wanted)
        };
        if !done.as_ref().is_some_and(is_newer) {
            *done = Some(listed);
        }
    }

    /// Replaces the definitions. Quarantined ones that the list no longer has stay, as far as there
    /// is room: a tool must not become callable because its server stops listing it.
    fn replace(&self, list: Arc<ToolList>, is_quarantined: impl Fn(&str, &Facts) -> bool) {
        let mut tools = self.tools.write();
        let KnownTools { list: old, mut others } = std::mem::take(&mut *tools);
        if !Arc::ptr_eq(&old, &list) {
            for (own, facts) in old.tools() {
                others.entry(own.clone()).or_insert_with(|| Arc::clone(facts));
            }
        }
        let is_unlisted = |(own, facts): &(Box<str>, Arc<Facts>)| {
            list.facts(own).is_none() && is_quarantined(own, facts)
        };
        let others = others.into_iter().filter(is_unlisted).take(MAX_UNLISTED).collect();
        *tools = KnownTools { list, others };
        self.changes.fetch_add(1, Ordering::AcqRel);
    }
}

// === impl Link ===

impl Link {
    /// The tools of the server may have changed: the next call lists them first.
    pub fn expect_new_tools(&self) {
        self.vetting.wanted.fetch_add(1, Ordering::AcqRel);
    }

    /// What is known of the definition of a tool, by the newest list of this connection.
    pub(super) fn facts_of(&self, tool: &str) -> Option<Arc<Facts>> {
        self.vetting.tools.read().get(tool).cloned()
    }

    /// Why the tool of a call is quarantined, by the newest list of this connection.
    fn quarantine_of(&self, tool: &str) -> Option<Reason> {
        match self.facts_of(tool) {
            Some(facts) => self.server.quarantine(tool, &facts),
            None => self.server.pins().quarantine_unlisted(self.server.settings.pin, tool),
        }
    }

    /// Judges the tool of a call, unless that was done since anything changed.
    pub(crate) fn check_usable(
        &self,
        tool: &str,
        usable: &mut Option<Usable>,
    ) -> Result<(), Reason> {
        // Read before the judgement: what changes during it is judged again.
        let now = Usable {
            changes: self.vetting.changes.load(Ordering::Acquire),
            revision: self.server.pins().revision(),
        };
        if *usable != Some(now) {
            *usable = None;
            self.quarantine_of(tool).map_or(Ok(()), Err)?;
            *usable = Some(now);
        }
        Ok(())
    }

    /// The same, if the newest list is current; otherwise the tools are listed before the call.
    pub(crate) fn check_known(
        &self,
        tool: &str,
        usable: &mut Option<Usable>,
    ) -> Result<(), Reason> {
        let is_current =
            self.up.load().as_ref().is_some_and(|up| self.vetting.is_current(up.epoch));
        if is_current { self.check_usable(tool, usable) } else { Ok(()) }
    }

    /// Whether the newest list of this connection is current.
    pub(crate) fn knows_its_tools(&self) -> bool {
        self.up.load().as_ref().is_some_and(|up| self.vetting.is_current(up.epoch))
    }

    /// Lists the tools of the connection, unless its newest list is current.
    pub(super) async fn vet(self: &Arc<Self>, up: &LiveChannel) -> Result<(), Failure> {
        if self.vetting.is_current(up.epoch) {
            return Ok(());
        }
        let asks = self.vetting.asks(up.epoch);
        if !self.advertised().can(Kind::Tools.capability()) && !self.server.pins().has_any() {
            self.vetting.set_done(asks);
            return Ok(());
        }
        let _turn = self.vetting.turn.lock().await;
        if self.vetting.is_current(up.epoch) {
            return Ok(());
        }
        match self.list_tools().await {
            Ok(_) => Ok(()),
            Err(failure) => {
                let why = failure.what(self.server.name());
                Err(Failure::unavailable(format!("its tools cannot be listed ({why})")))
            }
        }
    }

    /// Fetches the tools of the server, in turn.
    pub(super) async fn fetch_judged_tools(self: &Arc<Self>) -> Result<List, Failure> {
        let _turn = self.vetting.turn.lock().await;
        self.list_tools().await
    }

    async fn list_tools(self: &Arc<Self>) -> Result<List, Failure> {
        let up = self.ensure_up(tokio::time::Instant::now()).await?;
        let asks = self.vetting.asks(up.epoch);
        let (list, mut met) = self.fetch_pages(Kind::Tools).await?;
        mark_ambiguous(&mut met);
        self.meet(&met, true);
        let tools = self.server.pins().list_of(met);
        self.server.set_learned(&tools);
        if self.is_up_in(up.epoch) {
            self.replace_tools(Arc::clone(&tools));
            self.vetting.set_done(asks);
        }
        Ok(list.with_facts(tools.tools().iter().cloned()))
    }

    /// The tools of one page with what is known of their definitions. Entries without a name that
    /// every parser reads alike are left out.
    pub(super) fn tools_of(&self, result: &str) -> Result<Vec<Met>, Unreadable> {
        let judged = self.judge_entries(result)?;
        Ok(judged.into_iter().flatten().filter_map(|(_, met)| met).collect())
    }

    /// Whether a result is the complete list that the server sent last, all of it usable. Nothing is
    /// learned from it but that this connection has it.
    pub(super) fn is_last_list(&self, waiting: &AgentWaiter, result: &str) -> bool {
        let Some(wanted) = waiting.from_start else { return false };
        let Some(list) = self.server.pins().last_list() else { return false };
        if !self.server.has_learned(&list) || !list.is_in(result) {
            return false;
        }
        self.keep_list(waiting, &list, wanted);
        !self.server.quarantines_any(&list)
    }

    /// A page of tools as the agent may see it; `None` if nothing of it is quarantined.
    pub(super) fn without_quarantined(
        &self,
        waiting: &AgentWaiter,
        result: &str,
    ) -> Result<Option<String>, Unreadable> {
        let Some(entries) = self.judge_entries(result)? else { return Ok(None) };
        let mut met: Vec<Met> = entries.iter().filter_map(|(_, met)| met.clone()).collect();
        mark_ambiguous(&mut met);
        let wanted = waiting.from_start.filter(|_| has_no_cursor(result));
        self.meet(&met, wanted.is_some());
        let mut judged = met.iter();
        let shown = entries.iter().filter(|(_, named)| {
            let met = named.as_ref().and_then(|_| judged.next());
            met.is_some_and(|(own, facts)| self.server.quarantine(own, facts).is_none())
        });
        let shown: Vec<&str> = shown.map(|(raw, _)| *raw).collect();
        if let Some(wanted) = wanted {
            let list = self.server.pins().list_of(met);
            self.keep_list(waiting, &list, wanted);
            self.server.set_learned(&list);
        } else {
            self.keep_page(waiting, met);
        }
        if shown.len() == entries.len() {
            return Ok(None);
        }
        let list = only(result, Kind::Tools.member())?.ok_or(Unreadable)?;
        let shown = format!("[{}]", shown.join(","));
        let edited = Edit::new(result).replace(list, shown).map_err(|_| Unreadable)?.finish();
        String::from_utf8(edited.to_vec()).map(Some).map_err(|_| Unreadable)
    }

    /// The entries of a page, each with its name and facts; `None` if the page has no list. Names and
    /// classes are learned.
    #[expect(clippy::type_complexity, reason = "used by the two functions above")]
    fn judge_entries<'r>(
        &self,
        result: &'r str,
    ) -> Result<Option<Vec<(&'r str, Option<Met>)>>, Unreadable> {
        let Some(list) = only(result, Kind::Tools.member())? else { return Ok(None) };
        let all = items(list).ok().flatten().ok_or(Unreadable)?;
        let names = &self.server.listed_names;
        let entries = all.into_iter().map(|raw| {
            let own = only(raw, "name").ok().flatten().and_then(text);
            let met = own.map(|own| {
                let facts = self.server.pins().facts(&own, raw);
                names.learn_tool(&own, facts.class);
                (own.as_ref().into(), facts)
            });
            if met.is_none() {
                names.learn_unreadable(raw);
            }
            (raw, met)
        });
        let entries = entries.collect();
        names.mark_listed(Kind::Tools);
        Ok(Some(entries))
    }

    fn replace_tools(&self, list: Arc<ToolList>) {
        let is_quarantined =
            |own: &str, facts: &Facts| self.server.quarantine(own, facts).is_some();
        self.vetting.replace(list, is_quarantined);
    }

    fn meet(&self, met: &[Met], is_whole: bool) {
        let server = &self.server;
        let class = |own: &str, facts: &Facts| server.class_of(own, facts);
        let meeting = Meeting { mode: server.settings.pin, is_whole, class: &class };
        server.pins().meet(met, &meeting);
    }

    /// Learns from the complete list that an agent requested; `wanted` is how many times a list was
    /// necessary then.
    fn keep_list(&self, waiting: &AgentWaiter, list: &Arc<ToolList>, wanted: u64) {
        // A list of an earlier connection tells nothing about this one.
        if let Some(epoch) = waiting.epoch.filter(|epoch| self.is_up_in(*epoch)) {
            self.replace_tools(Arc::clone(list));
            self.vetting.set_done(Listed { epoch, wanted });
        }
    }

    /// Learns from a page that an agent requested.
    fn keep_page(&self, waiting: &AgentWaiter, met: Vec<Met>) {
        if waiting.epoch.is_some_and(|epoch| self.is_up_in(epoch)) {
            let mut tools = self.vetting.tools.write();
            tools.others.extend(met);
            self.vetting.changes.fetch_add(1, Ordering::AcqRel);
        }
    }
}

fn has_no_cursor(result: &str) -> bool {
    matches!(only(result, "nextCursor"), Ok(None | Some("null")))
}
