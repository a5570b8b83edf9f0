//! State that all parts of a simulation share. Every event passes through here to the trace and to the checkers.

use std::sync::{Arc, Mutex, MutexGuard};

use cronhold_core::record::{ActionRecord, LockName, NodeRecord};
use cronhold_core::{DecisionContext, NodeId, RunId};
use cronhold_schedule::{Instant, Span};
use cronhold_store::lock_mutex;
use cronhold_store::{Unit, UnitReceipt};

use crate::check::{CheckerContext, CheckerSet, DaemonChange, ObservedLaunch, Violation};
use crate::executor::SimExecutor;
use crate::scenario::{FaultPeriod, Scenario};
use crate::store_model::{StoreModel, name};
use crate::time::SimTime;
use crate::trace::{self, EventTrace};

/// What all parts of a simulation share. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct SimContext {
    pub(crate) time: SimTime,
    pub(crate) executor: SimExecutor,
    /// Time zones and calendars.
    pub(crate) world: DecisionContext,
    /// The longest ordinary delay of a call to the store, one way.
    pub(crate) usual: Span,
    /// The finished runs of a job in each state that the store keeps at most; `None` if it sets no limit.
    kept_max: Option<u32>,
    record: Arc<Mutex<SimRecord>>,
}

#[derive(Debug)]
struct SimRecord {
    trace: EventTrace,
    model: StoreModel,
    checkers: CheckerSet,
    launches: u64,
    units: u64,
    refused: u64,
    /// How far the store's clock is ahead of the true time, in microseconds, and whether nodes share the store.
    ahead: i64,
    is_shared: bool,
}

/// Counters of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimTally {
    /// Number of committed units.
    pub units: u64,
    /// Number of units that the store refused.
    pub refused: u64,
    /// Created runs, including those that stand for a span of skips.
    pub runs: u64,
    /// Number of launched programs.
    pub launches: u64,
}

impl SimContext {
    /// The context of a simulation that has not started.
    pub(crate) fn new(world: DecisionContext, scenario: &Scenario, trace: EventTrace) -> Self {
        let (model, checkers) = (StoreModel::default(), CheckerSet::default());
        let record =
            SimRecord { trace, model, checkers, launches: 0, units: 0, refused: 0, ahead: 0, is_shared: false };
        Self {
            time: SimTime::new(scenario.start),
            executor: SimExecutor::default(),
            world,
            usual: Span::from_micros(scenario.usual),
            kept_max: scenario.kept_max,
            record: Arc::new(Mutex::new(record)),
        }
    }

    /// Adds a line to the trace.
    pub(crate) fn log(&self, source: &str, what: impl FnOnce() -> String) {
        self.record().trace.log(self.time.now(), source, what);
    }

    /// Reports a unit that a machine committed.
    pub(crate) fn committed(&self, source: &str, unit: &Unit, committed: &UnitReceipt) {
        let mut record = self.record();
        record.units += 1;
        let SimRecord { trace, model, .. } = &mut *record;
        trace.log(self.time.now(), source, || trace::describe_unit(unit, model));
        self.notify(&mut record, |checkers, context| checkers.before(context, unit));
        let now = self.store_time(&record);
        record.model.apply(unit, now);
        self.notify(&mut record, |checkers, context| checkers.after(context, unit, committed));
    }

    /// Reports a unit that the store refused, because another node has changed a record or holds a lock.
    pub(crate) fn refused(&self, unit: &Unit) {
        let mut record = self.record();
        record.refused += 1;
        self.notify(&mut record, |checkers, context| checkers.refused(context, unit));
    }

    /// Sets the store's time and whether nodes share the store. Must be called before each event of the store.
    pub(crate) fn set_store_time(&self, now: Instant, is_shared: bool) {
        let mut record = self.record();
        record.ahead = now.micros() - self.time.day().micros();
        record.is_shared = is_shared;
    }

    /// Reports a heartbeat of a node and the locks that it renewed.
    pub(crate) fn heartbeat(&self, node: &Arc<NodeRecord>, renewed: &[(LockName, RunId)]) {
        let mut record = self.record();
        let now = self.store_time(&record);
        record.model.beat(node, renewed, now);
        self.notify(&mut record, |checkers, context| checkers.heartbeat(context, node));
    }

    /// Reports that a node received the list of nodes.
    pub(crate) fn received_nodes(&self, machine: usize) {
        self.notify(&mut self.record(), |checkers, context| checkers.received_nodes(context, node_id(machine)));
    }

    /// Reports that the daemon of a machine started, stopped, or was disturbed.
    pub(crate) fn daemon_changed(&self, machine: usize, change: DaemonChange) {
        self.notify(&mut self.record(), |checkers, context| {
            checkers.daemon_changed(context, Some(node_id(machine)), change);
        });
    }

    /// Reports the launch of a program.
    pub(crate) fn launched(&self, source: &str, launch: &ObservedLaunch<'_>) {
        let mut record = self.record();
        record.launches += 1;
        record.trace.log(self.time.now(), source, || format!("program of {} starts", name(launch.run)));
        self.notify(&mut record, |checkers, context| checkers.launched(context, launch));
    }

    /// Reports that the receiver of an action got it.
    pub(crate) fn delivered(&self, source: &str, action: &ActionRecord) {
        self.log(source, || format!("action {} of {} is received", action.id.number, action.job));
        self.record().checkers.delivered(action.id);
    }

    /// Reports that the lease of a program was extended to `kill_at`.
    pub(crate) fn extended(&self, run: RunId, kill_at: Span) {
        self.record().checkers.extended(run, kill_at);
    }

    /// Reports the end of a program.
    pub(crate) fn ended(&self, source: &str, run: RunId, how: &str) {
        self.log_program(source, run, || how.to_owned());
        let mut record = self.record();
        self.notify(&mut record, |checkers, context| checkers.ended(context, run));
    }

    /// Adds a line about the program of a run to the trace.
    pub(crate) fn log_program(&self, source: &str, run: RunId, what: impl FnOnce() -> String) {
        let mut record = self.record();
        let SimRecord { trace, model, .. } = &mut *record;
        trace.log(self.time.now(), source, || {
            let known = model.runs.get(&run).map_or_else(|| run.to_string(), |run| name(run));
            format!("program of {known} {}", what())
        });
    }

    /// Pauses the daemon of a machine.
    pub(crate) fn paused(&self, machine: usize, source: &str) {
        self.log(source, || "is paused".to_owned());
        self.daemon_changed(machine, DaemonChange::Down);
        self.executor.pause(machine);
    }

    /// Resumes the daemon of a machine.
    pub(crate) fn resumed(&self, machine: usize, source: &str) {
        self.log(source, || "resumes".to_owned());
        self.daemon_changed(machine, DaemonChange::Up);
        self.executor.resume(machine);
    }

    /// Reports the start of a period of store faults, for one machine or for all.
    pub(crate) fn begin_fault(&self, period: FaultPeriod) {
        self.log("store", || format!("is {period}"));
        let node = period.machine.map(node_id);
        self.notify(&mut self.record(), |checkers, context| {
            checkers.daemon_changed(context, node, DaemonChange::StoreFaultBegins);
        });
    }

    /// Reports the end of a period of store faults.
    pub(crate) fn end_fault(&self, period: FaultPeriod) {
        self.log("store", || format!("is no longer {period}"));
        let node = period.machine.map(node_id);
        self.notify(&mut self.record(), |checkers, context| {
            checkers.daemon_changed(context, node, DaemonChange::StoreFaultEnds);
        });
    }

    /// Reports that everything is at rest, or should be.
    pub(crate) fn at_rest(&self) {
        self.notify(&mut self.record(), |checkers, context| checkers.at_rest(context));
    }

    /// Reports that everything has been at rest for so long that what can expire has expired.
    pub(crate) fn aged(&self) {
        self.notify(&mut self.record(), |checkers, context| checkers.aged(context));
    }

    /// Reads the store model.
    pub(crate) fn query<T>(&self, read: impl FnOnce(&StoreModel) -> T) -> T {
        read(&self.record().model)
    }

    /// The first violation, if there is one.
    pub(crate) fn finding(&self) -> Option<Violation> {
        self.record().checkers.finding()
    }

    pub(crate) fn tally(&self) -> SimTally {
        let record = self.record();
        let runs = record.model.runs.len() + record.model.spans.len();
        SimTally { units: record.units, refused: record.refused, runs: runs as u64, launches: record.launches }
    }

    /// Whether a trace is recorded.
    pub(crate) fn is_traced(&self) -> bool {
        self.record().trace.is_wanted()
    }

    /// Takes the trace; later events are not recorded.
    pub(crate) fn take_trace(&self) -> Vec<String> {
        std::mem::take(&mut self.record().trace).into_lines()
    }

    /// Calls the checkers with the current state.
    fn notify(&self, record: &mut SimRecord, notify: impl FnOnce(&mut CheckerSet, CheckerContext<'_>)) {
        let now = self.store_time(record);
        let SimRecord { model, checkers, is_shared, .. } = record;
        let (world, at, usual, is_shared) = (&self.world, self.time.now(), self.usual, *is_shared);
        let kept_max = self.kept_max;
        notify(checkers, CheckerContext { model, world, at, now, usual, is_shared, kept_max });
    }

    fn store_time(&self, record: &SimRecord) -> Instant {
        Instant::from_micros(self.time.day().micros() + record.ahead)
    }

    fn record(&self) -> MutexGuard<'_, SimRecord> {
        lock_mutex(&self.record)
    }
}

/// The id of the node on a machine.
pub(crate) fn node_id(machine: usize) -> NodeId {
    NodeId::from_bits(machine as u128 + 1)
}
