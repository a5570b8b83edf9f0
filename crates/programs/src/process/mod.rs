//! The table of a node's processes. The keeper owns them; the table holds what the daemon knows about each: whether it
//! was requested, runs or has ended, and what was reported. The table receives events and never blocks, so that every
//! order of events can be tested.
//!
//! A program is started at most once: a launch that was sent is sent again only if it is not in the keeper's list,
//! which contains everything that the keeper started and has not been told to forget.
//!
//! The keeper may also have programs of runs that are over, because other nodes declared them lost while this one was
//! unreachable. The table reports these like any other, and the node decides what to do about them.

mod entry;
mod exit;
mod link;
mod outbox;
#[cfg(test)]
mod tests;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use cronhold_core::command::ProgramReport;
use cronhold_core::decide::LAUNCH_WITHIN;
use cronhold_core::record::{OutputSummary, Run};
use cronhold_core::signal::Signal;
use cronhold_core::{RunId, State};
use cronhold_engine::LaunchRequest;
use cronhold_keeper::client::ConnectionError;
use cronhold_keeper::{FromKeeper, ListedProgram, ProgramStage, RunKey, ToKeeper};
use cronhold_schedule::Span;

use self::entry::{ProcessEntry, ProcessState};
pub use self::exit::PluginEnd;
pub use self::link::KEEPER_PENDING;
use self::link::KeeperLink;
use self::outbox::KeeperOutbox;
use crate::event::ProgramEvent;

/// A process whose run was final before it ended is forgotten this long after its last report, because the node does
/// not answer a report that changes nothing.
const EXPIRE_AFTER: Span = Span::from_secs(60);

/// The reason of a launch without an answer.
const UNANSWERED: &str = "the keeper does not answer launches; its programs continue";
/// How long after `launch_by` the keeper may take to answer a launch. A keeper that answers later does not start the
/// program, because it compares `launch_by` itself.
const ANSWER_WITHIN: Span = Span::from_secs(5);

/// All processes of a node.
///
/// Invariant: `launch_deadlines` holds exactly the entries that are [`ProcessState::Queued`].
#[derive(Debug, Default)]
pub struct Processes {
    entries: BTreeMap<RunId, ProcessEntry>,
    link: KeeperLink,
    outbox: KeeperOutbox,
    /// Programs of the keeper that no run has requested; empty once the node is ready.
    unclaimed: BTreeMap<RunId, ProgramStage>,
    /// Whether the node has requested everything that earlier daemons left.
    is_ready: bool,
    has_logged_found: bool,
    launch_deadlines: BTreeSet<(Span, RunId)>,
    /// When launches that the keeper may have are decided without it. Entries that are answered stay until then.
    answer_deadlines: BTreeSet<(Span, RunId)>,
    /// When processes of settled runs are forgotten.
    expiries: BTreeSet<(Span, RunId)>,
    reports: VecDeque<(RunId, ProgramReport)>,
    unstored: VecDeque<UnstoredOutput>,
    events: Vec<ProgramEvent>,
}

/// A program that has ended or was lost, and whose output has to be stored to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnstoredOutput {
    pub run: RunId,
    /// The length of the output. `None` for a program that was lost with its keeper: then everything in the file
    /// counts.
    pub length: Option<u64>,
}

/// Requests of the node.
impl Processes {
    /// Starts a run's program, unless it was requested before.
    pub fn launch(&mut self, request: LaunchRequest) {
        let (id, launch_by) = (request.run.id, request.launch_by);
        if let Entry::Vacant(entry) = self.entries.entry(id) {
            entry.insert(ProcessEntry::launched(request));
            self.queue_launch(id, launch_by);
        }
    }

    /// Adopts a run's program that may have been started before. A node that requests a known program may have missed a
    /// report: it gets the last one again, and later ones as they come.
    pub fn adopt(&mut self, run: Arc<Run>, uptime: Span) {
        let (id, state) = (run.id, run.state);
        let Some(entry) = self.entries.get_mut(&id) else {
            self.entries.insert(id, ProcessEntry::adopted(run));
            // An earlier daemon has sent the launch, at the latest just before.
            self.answer_deadlines.insert((uptime.plus(LAUNCH_WITHIN).plus(ANSWER_WITHIN), id));
            if self.link.is_up() {
                let stage = self.unclaimed.remove(&id);
                self.update(id, stage);
            }
            return;
        };
        entry.is_settled = false;
        match entry.state {
            ProcessState::Running if state == State::Stopping && entry.stop.is_none() => {
                let stop = (run.terms.signal, run.terms.grace);
                entry.stop = Some(stop);
                self.outbox.stop(id, stop);
            }
            ProcessState::Running if state == State::Starting => self.report(id, ProgramReport::Launched),
            ProcessState::Reported => {
                if let Some(report) = entry.last_report.clone() {
                    self.report(id, report);
                }
            }
            _ => {}
        }
    }

    /// Extends leases. An extension that comes out of order does not shorten one, and the keeper ignores extensions of
    /// programs that have ended.
    pub fn extend(&mut self, leases: &[(RunId, Span)]) {
        for (run, kill_at) in leases {
            let Some(entry) = self.entries.get_mut(run) else { continue };
            if entry.state.is_over() || entry.kill_at.is_some_and(|before| before >= *kill_at) {
                continue;
            }
            entry.kill_at = Some(*kill_at);
            if entry.state.is_with_keeper() {
                self.outbox.extend(*run);
            }
        }
    }

    /// Requests the end of a run's program, as its job defines it.
    pub fn stop(&mut self, run: &Run) {
        self.end(run.id, run.terms.signal, run.terms.grace);
    }

    /// Sends a run's program a signal. SIGKILL must not get lost, so it is a stop without grace.
    pub fn signal(&mut self, run: RunId, signal: Signal) {
        if signal == Signal::KILL {
            self.end(run, signal, Span::ZERO);
        } else if self.entries.contains_key(&run) {
            self.outbox.signal(run, signal);
        } else {
            self.report(run, ProgramReport::Lost);
        }
    }

    /// The node has requested everything that earlier daemons left.
    pub fn ready(&mut self) {
        if !std::mem::replace(&mut self.is_ready, true) && self.link.is_up() {
            self.adopt_unclaimed();
        }
    }

    /// A run is final in the store, so the keeper need not remember it.
    pub fn settled(&mut self, run: RunId) {
        let Some(entry) = self.entries.get_mut(&run) else { return };
        entry.is_settled = true;
        match entry.state {
            ProcessState::Reported => self.forget(run),
            ProcessState::Queued => {
                self.launch_deadlines.remove(&(entry.launch_by, run));
                self.entries.remove(&run);
            }
            // It is forgotten after its end was reported.
            _ => {}
        }
    }

    fn end(&mut self, run: RunId, signal: Signal, grace: Span) {
        let Some(entry) = self.entries.get_mut(&run) else { return self.report(run, ProgramReport::Lost) };
        match entry.state {
            ProcessState::Queued => {
                self.launch_deadlines.remove(&(entry.launch_by, run));
                self.report_last(run, exit::never_started(signal));
            }
            ProcessState::Requested | ProcessState::Uncertain | ProcessState::Sought | ProcessState::Running => {
                // SIGKILL is never replaced, and a repeated stop does not start another grace period.
                if entry.stop.is_none_or(|(before, _)| before != signal && before != Signal::KILL) {
                    entry.stop = Some((signal, grace));
                    self.outbox.stop(run, (signal, grace));
                }
            }
            ProcessState::Ended(_) | ProcessState::Lost | ProcessState::Reported => {}
        }
    }
}

/// Reports of the keeper and of the thread that stores outputs.
impl Processes {
    /// There is a connection to a keeper. Its list follows.
    pub fn connected(&mut self, is_other_version: bool) {
        self.link.connected(is_other_version);
    }

    /// There is no connection to the keeper. Returns whether that should be logged.
    pub fn disconnected(&mut self, error: ConnectionError) -> bool {
        for entry in self.entries.values_mut().filter(|entry| entry.state == ProcessState::Requested) {
            entry.state = ProcessState::Uncertain;
        }
        self.link.disconnected(error)
    }

    /// The keeper does not respond.
    pub fn silent(&mut self, pid: u32) {
        self.link.silent(format!("the keeper (pid {pid}) does not respond; its programs continue"));
    }

    /// Why the keeper cannot start programs; `None` if it can.
    pub fn keeper_problem(&self) -> Option<Arc<str>> {
        self.link.problem()
    }

    /// The keeper sent a message.
    pub fn receive(&mut self, message: FromKeeper) {
        self.link.responded();
        match message {
            FromKeeper::Hello { .. } => {}
            FromKeeper::Pong { problem } => self.link.report_problem(problem),
            FromKeeper::Listed { programs, is_last } => {
                if let Some(list) = self.link.receive_list(programs, is_last) {
                    self.compare(list);
                }
            }
            FromKeeper::Started { run, pid } => self.update_or_adopt(run, ProgramStage::Running { pid }),
            FromKeeper::Ended { run, end } => self.update_or_adopt(run, ProgramStage::Ended(end)),
            FromKeeper::Refused { run, why } => {
                if let Some(run) = run_id(run) {
                    self.refused(run, why);
                }
            }
        }
    }

    /// A run's program cannot be started.
    pub fn refused(&mut self, run: RunId, why: String) {
        match self.entries.get(&run).map(|entry| (entry.state, entry.is_assumed)) {
            Some((ProcessState::Requested | ProcessState::Uncertain, _)) => {
                self.report_last(run, ProgramReport::NotLaunched(why));
            }
            // The node was told that it runs.
            Some((ProcessState::Running, true)) => self.report_last(run, ProgramReport::KeeperLost),
            _ => {}
        }
    }

    /// Takes the launches that have no answer although the keeper can start none of them any more.
    pub fn take_unanswered(&mut self, uptime: Span) -> BTreeSet<RunId> {
        let mut unanswered = BTreeSet::new();
        while let Some((_, run)) = self.answer_deadlines.first().copied().filter(|(at, _)| *at <= uptime) {
            self.answer_deadlines.pop_first();
            if self.entries.get(&run).is_some_and(ProcessEntry::waits_for_launch) {
                unanswered.insert(run);
            }
        }
        unanswered
    }

    /// Decides a launch that has no answer. `may_run` is whether the keeper may have started the program: then it counts
    /// as running, so that no other takes its place, until the keeper responds.
    pub fn settle_unanswered(&mut self, run: RunId, may_run: bool) {
        let Some(entry) = self.entries.get_mut(&run).filter(|entry| entry.waits_for_launch()) else { return };
        let (before, stop) = (entry.state, entry.stop);
        if may_run {
            (entry.state, entry.is_assumed) = (ProcessState::Running, true);
            if let Some(stop) = stop {
                self.outbox.stop(run, stop);
            }
            self.report(run, ProgramReport::Launched);
        } else if before == ProcessState::Sought {
            self.entries.remove(&run);
            self.report(run, ProgramReport::Lost);
        } else {
            // A keeper without pings shows only here that it hangs.
            self.link.silent(UNANSWERED.to_owned());
            let why = self.link.problem().map_or_else(|| UNANSWERED.to_owned(), |why| why.to_string());
            self.report_last(run, ProgramReport::NotLaunched(why));
        }
    }

    /// The uptime at which the next launch without an answer is decided.
    pub fn next_unanswered(&self) -> Option<Span> {
        self.answer_deadlines.first().map(|(at, _)| *at)
    }

    /// The output of a program that has ended or was lost is stored. `plugin` has the messages of a plug-in.
    pub fn output_stored(&mut self, run: RunId, written: OutputSummary, plugin: Option<&PluginEnd>) {
        let Some(entry) = self.entries.get(&run) else { return };
        match entry.state {
            ProcessState::Ended(end) => self.report_last(run, exit::ended(entry.run.as_deref(), end, written, plugin)),
            ProcessState::Lost => self.report_last(run, ProgramReport::KeeperLost),
            _ => {}
        }
    }

    /// Compares the whole list of the keeper with the table.
    fn compare(&mut self, list: Vec<ListedProgram>) {
        let listed = list.into_iter().filter_map(|program| Some((run_id(program.run)?, program.stage)));
        let mut listed: BTreeMap<RunId, ProgramStage> = listed.collect();
        let known: Vec<RunId> = self.entries.keys().copied().collect();
        for run in known {
            let stage = listed.remove(&run);
            self.update(run, stage);
        }
        self.unclaimed = listed;
        if self.is_ready {
            self.adopt_unclaimed();
        }
    }

    fn update_or_adopt(&mut self, run: RunKey, stage: ProgramStage) {
        let Some(run) = run_id(run) else { return };
        if self.entries.contains_key(&run) {
            self.update(run, Some(stage));
        } else if self.is_ready {
            self.adopt_one_unclaimed(run, stage);
        } else {
            // A run may still request it.
            self.unclaimed.insert(run, stage);
        }
    }

    /// The keeper has a run's program at this stage; `None` if it does not know the run.
    fn update(&mut self, run: RunId, stage: Option<ProgramStage>) {
        let Some(entry) = self.entries.get_mut(&run) else { return };
        let before = entry.state;
        if before.is_over() {
            return;
        }
        entry.is_assumed = false;
        if stage.is_some() {
            self.launch_deadlines.remove(&(entry.launch_by, run));
        }
        match (before, stage) {
            (_, Some(ProgramStage::Running { .. })) => {
                entry.state = ProcessState::Running;
                // A stop that was requested earlier, or sent on a connection that broke, is sent again.
                if let Some(stop) = entry.stop {
                    self.outbox.stop(run, stop);
                }
                // A launch carries the lease with it.
                if entry.kill_at.is_some() && before != ProcessState::Requested {
                    self.outbox.extend(run);
                }
                if before != ProcessState::Running {
                    self.report(run, ProgramReport::Launched);
                }
            }
            (_, Some(ProgramStage::Ended(end))) => {
                entry.state = ProcessState::Ended(end);
                self.unstored.push_back(UnstoredOutput { run, length: Some(end.output) });
            }
            (_, Some(ProgramStage::Lost)) => {
                entry.state = ProcessState::Lost;
                self.unstored.push_back(UnstoredOutput { run, length: None });
            }
            (_, None) if entry.is_settled => drop(self.entries.remove(&run)),
            // The keeper did not start it, so it can be requested again. If it is too late for that, the deadline
            // reports it.
            (ProcessState::Uncertain, None) => {
                entry.state = ProcessState::Queued;
                let launch_by = entry.launch_by;
                self.queue_launch(run, launch_by);
            }
            (ProcessState::Sought | ProcessState::Running, None) => {
                self.entries.remove(&run);
                self.report(run, ProgramReport::Lost);
            }
            (_, None) => {}
        }
    }

    /// The node has requested all that it needs. Anything else in the keeper belongs to runs that are over or unknown.
    fn adopt_unclaimed(&mut self) {
        if !std::mem::replace(&mut self.has_logged_found, true) {
            let count = |is_wanted: fn(ProcessState) -> bool| {
                self.entries.values().filter(|entry| is_wanted(entry.state)).count()
            };
            let running = count(|state| state == ProcessState::Running);
            let ended = count(|state| matches!(state, ProcessState::Ended(_)));
            if running + ended > 0 {
                self.events.push(ProgramEvent::ProgramsFound { running, ended });
            }
        }
        for (run, stage) in std::mem::take(&mut self.unclaimed) {
            self.adopt_one_unclaimed(run, stage);
        }
    }

    /// The node stops such a program if it must not run beside others, and otherwise records how it ends.
    fn adopt_one_unclaimed(&mut self, run: RunId, stage: ProgramStage) {
        if let ProgramStage::Running { pid } = stage {
            self.events.push(ProgramEvent::UnclaimedProgram { run, pid });
        }
        self.entries.insert(run, ProcessEntry::unclaimed());
        self.update(run, Some(stage));
    }
}

/// What other parts take from the table: messages to the keeper, reports to the node, outputs to store, events to log.
impl Processes {
    /// The next message to the keeper that is neither a launch nor a forget.
    pub fn next_control(&mut self) -> Option<ToKeeper> {
        if !self.link.is_up() {
            return None;
        }
        // A keeper that retires starts nothing more, so it is asked only when it is idle.
        let is_busy = || self.entries.values().any(|entry| entry.state.is_with_keeper());
        if self.link.is_replacement_pending() && self.is_ready && !is_busy() {
            self.link.retire();
            return Some(ToKeeper::Retire);
        }
        // Leases first, because one that is sent too late has ended.
        while let Some(id) = self.outbox.next_lease() {
            if let Some(entry) = self.entries.get(&id).filter(|entry| entry.state.is_with_keeper())
                && let Some(kill_at) = entry.kill_at
            {
                return Some(ToKeeper::Lease { run: RunKey(id.bits()), kill_at: kill_at.micros() });
            }
        }
        // Skip the others: a stop is queued again when its program is found running.
        while let Some((id, message)) = self.outbox.next_control() {
            if self.entries.get(&id).is_some_and(|entry| entry.state == ProcessState::Running) {
                return Some(message);
            }
        }
        None
    }

    /// The next program to be launched. It counts as requested from now on.
    pub fn next_launch(&mut self, uptime: Span) -> Option<LaunchRequest> {
        if !self.link.may_launch() {
            return None;
        }
        while let Some(id) = self.outbox.next_launch() {
            // Launches that are too late are left to their deadline.
            if let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.launch_by > uptime)
                && let Some(request) = entry.launch_request()
            {
                self.launch_deadlines.remove(&(entry.launch_by, id));
                self.answer_deadlines.insert((entry.launch_by.plus(ANSWER_WITHIN), id));
                entry.state = ProcessState::Requested;
                return Some(request);
            }
        }
        None
    }

    /// The next message that lets the keeper forget runs.
    pub fn next_forget(&mut self) -> Option<ToKeeper> {
        if self.link.is_up() { self.outbox.next_forget() } else { None }
    }

    /// Takes up to `most` available reports.
    pub fn take_reports(&mut self, uptime: Span, most: usize) -> Vec<(RunId, ProgramReport)> {
        while let Some((_, run)) = self.launch_deadlines.first().copied().filter(|(at, _)| *at <= uptime) {
            self.launch_deadlines.pop_first();
            let why = self.link.problem().map(|why| why.to_string());
            let why = why.unwrap_or_else(|| format!("the keeper did not start it within {LAUNCH_WITHIN}"));
            self.report_last(run, ProgramReport::NotLaunched(why));
        }
        let count = self.reports.len().min(most);
        let taken: Vec<(RunId, ProgramReport)> = self.reports.drain(..count).collect();
        for (run, _) in &taken {
            if self.entries.get(run).is_some_and(ProcessEntry::is_done) {
                self.expiries.insert((uptime.plus(EXPIRE_AFTER), *run));
            }
        }
        taken
    }

    /// Forgets processes of settled runs whose last report was delivered long enough ago. Returns whether there is a
    /// message for the keeper.
    pub fn expire_settled(&mut self, uptime: Span) -> bool {
        let mut has_expired = false;
        while let Some((_, run)) = self.expiries.first().copied().filter(|(at, _)| *at <= uptime) {
            self.expiries.pop_first();
            if self.entries.get(&run).is_some_and(ProcessEntry::is_done) {
                self.forget(run);
                has_expired = true;
            }
        }
        has_expired
    }

    /// The uptime at which there is a report to take or an entry to expire: zero if there is a report now.
    pub fn next_due(&self) -> Option<Span> {
        let first = |times: &BTreeSet<(Span, RunId)>| times.first().map(|(at, _)| *at);
        let later = [&self.launch_deadlines, &self.expiries].into_iter().filter_map(first).min();
        if self.reports.is_empty() { later } else { Some(Span::ZERO) }
    }

    /// Takes up to `most` programs whose outputs have to be stored to the end.
    pub fn take_unstored(&mut self, most: usize) -> Vec<UnstoredOutput> {
        let count = self.unstored.len().min(most);
        self.unstored.drain(..count).collect()
    }

    /// Takes the events to log.
    pub fn take_events(&mut self) -> Vec<ProgramEvent> {
        std::mem::take(&mut self.events)
    }

    /// Whether a run has a process here.
    pub fn has(&self, run: RunId) -> bool {
        self.entries.contains_key(&run)
    }

    /// Whether all processes are known: the keeper has sent its list, and the node has requested what it needs.
    pub fn has_all(&self) -> bool {
        self.is_ready && self.link.is_up()
    }

    /// Whether this daemon was the first to request a run's process.
    pub fn is_new(&self, run: RunId) -> bool {
        self.entries.get(&run).is_some_and(|entry| entry.is_new)
    }

    /// The run of a process; `None` if its run is over or unknown.
    pub fn run(&self, run: RunId) -> Option<Arc<Run>> {
        self.entries.get(&run)?.run.clone()
    }

    /// Runs whose programs run.
    pub fn running(&self) -> impl Iterator<Item = RunId> {
        self.entries.iter().filter(|(_, entry)| entry.state == ProcessState::Running).map(|(run, _)| *run)
    }

    fn queue_launch(&mut self, run: RunId, launch_by: Span) {
        self.launch_deadlines.insert((launch_by, run));
        self.outbox.launch(run);
    }

    /// The last report of a run.
    fn report_last(&mut self, run: RunId, report: ProgramReport) {
        let Some(entry) = self.entries.get_mut(&run) else { return };
        entry.state = ProcessState::Reported;
        entry.last_report = Some(report.clone());
        self.report(run, report);
    }

    fn report(&mut self, run: RunId, report: ProgramReport) {
        self.reports.push_back((run, report));
    }

    fn forget(&mut self, run: RunId) {
        self.entries.remove(&run);
        self.outbox.forget(run);
    }
}

/// The run of a key; `None` if the key does not come from a Cronhold daemon.
fn run_id(key: RunKey) -> Option<RunId> {
    RunId::parse(&key.to_string()).ok()
}
