//! Where a simulation takes place: what all its parts share, and the one place where events are told to the film and
//! to the checkers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cronhold_core::record::{LockName, NodeRecord};
use cronhold_core::{DecisionContext, NodeId, RunId};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Unit, UnitReceipt};

use crate::check::{CheckerContext, CheckerSet, DaemonChange, ObservedLaunch, Violation};
use crate::executor::SimExecutor;
use crate::scenario::FaultPeriod;
use crate::store_model::{StoreModel, name};
use crate::time::SimTime;
use crate::trace::{self, EventTrace};

/// What all parts of a simulation share. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct SimContext {
    /// Time.
    pub(crate) time: SimTime,
    /// What can go on.
    pub(crate) executor: SimExecutor,
    /// Zones and calendars.
    pub(crate) world: DecisionContext,
    told: Arc<Mutex<SimRecord>>,
}

#[derive(Debug)]
struct SimRecord {
    trace: EventTrace,
    model: StoreModel,
    checkers: CheckerSet,
    launches: u64,
    units: u64,
    /// What the store's clock is ahead of the true time, in microseconds, and whether nodes share it.
    ahead: i64,
    is_shared: bool,
}

/// How much happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimTally {
    /// Units that were done.
    pub units: u64,
    /// Runs that were made, spans included.
    pub runs: u64,
    /// Programs that were started.
    pub launches: u64,
}

impl SimContext {
    /// A stage on which nothing has happened yet.
    pub(crate) fn new(world: DecisionContext, start: Instant, trace: EventTrace) -> Self {
        let (model, checkers) = (StoreModel::default(), CheckerSet::default());
        let told = SimRecord { trace, model, checkers, launches: 0, units: 0, ahead: 0, is_shared: false };
        Self { time: SimTime::new(start), executor: SimExecutor::default(), world, told: Arc::new(Mutex::new(told)) }
    }

    /// Adds a line to the film.
    pub(crate) fn say(&self, who: &str, what: impl FnOnce() -> String) {
        self.told().trace.say(self.time.now(), who, what);
    }

    /// A unit was done, for a machine.
    pub(crate) fn committed(&self, who: &str, unit: &Unit, committed: &UnitReceipt) {
        let mut told = self.told();
        told.units += 1;
        let SimRecord { trace, model, .. } = &mut *told;
        trace.say(self.time.now(), who, || trace::of_unit(unit, model));
        self.tell(&mut told, |checkers, scene| checkers.before(scene, unit));
        let now = self.store_time(&told);
        told.model.apply(unit, now);
        self.tell(&mut told, |checkers, scene| checkers.after(scene, unit, committed));
    }

    /// What the store's clock says, and whether nodes share the store. Told before whatever happens to the store.
    pub(crate) fn store_says(&self, now: Instant, is_shared: bool) {
        let mut told = self.told();
        told.ahead = now.micros() - self.time.day().micros();
        told.is_shared = is_shared;
    }

    /// A node said that it is alive and has renewed these locks.
    pub(crate) fn beaten(&self, node: &Arc<NodeRecord>, renewed: &[(LockName, RunId)]) {
        let mut told = self.told();
        let now = self.store_time(&told);
        told.model.beat(node, renewed, now);
        self.tell(&mut told, |checkers, scene| checkers.beaten(scene, node));
    }

    /// A node has heard who is there.
    pub(crate) fn saw_nodes(&self, machine: usize) {
        self.tell(&mut self.told(), |checkers, scene| checkers.saw_nodes(scene, node_id(machine)));
    }

    /// The daemon of a machine came, went, or could not do what it wanted.
    pub(crate) fn turned(&self, machine: usize, turn: DaemonChange) {
        self.tell(&mut self.told(), |checkers, scene| checkers.turned(scene, Some(node_id(machine)), turn));
    }

    /// A program was started.
    pub(crate) fn launched(&self, who: &str, launch: &ObservedLaunch<'_>) {
        let mut told = self.told();
        told.launches += 1;
        told.trace.say(self.time.now(), who, || format!("program of {} starts", name(launch.run)));
        self.tell(&mut told, |checkers, scene| checkers.launched(scene, launch));
    }

    /// A program may live until then.
    pub(crate) fn extended(&self, run: RunId, kill_at: Span) {
        self.told().checkers.extended(run, kill_at);
    }

    /// A program is no more.
    pub(crate) fn ended(&self, who: &str, run: RunId, how: &str) {
        self.say_of(who, run, || how.to_owned());
        let mut told = self.told();
        self.tell(&mut told, |checkers, scene| checkers.ended(scene, run));
    }

    /// Adds a line about the program of a run.
    pub(crate) fn say_of(&self, who: &str, run: RunId, what: impl FnOnce() -> String) {
        let mut told = self.told();
        let SimRecord { trace, model, .. } = &mut *told;
        trace.say(self.time.now(), who, || {
            let known = model.runs.get(&run).map_or_else(|| run.to_string(), |run| name(run));
            format!("program of {known} {}", what())
        });
    }

    /// The daemon of a machine stands still from now on.
    pub(crate) fn paused(&self, machine: usize, who: &str) {
        self.say(who, || "is paused".to_owned());
        self.turned(machine, DaemonChange::Down);
        self.executor.pause(machine);
    }

    /// It goes on.
    pub(crate) fn resumed(&self, machine: usize, who: &str) {
        self.say(who, || "goes on".to_owned());
        self.turned(machine, DaemonChange::Up);
        self.executor.resume(machine);
    }

    /// The store takes no writes from now on, from one machine or from any.
    pub(crate) fn storm(&self, storm: FaultPeriod) {
        self.say("store", || format!("is {storm}"));
        let node = storm.machine.map(node_id);
        self.tell(&mut self.told(), |checkers, scene| checkers.turned(scene, node, DaemonChange::Storm));
    }

    /// That is over.
    pub(crate) fn lull(&self, storm: FaultPeriod) {
        self.say("store", || format!("is not {storm} any more"));
        let node = storm.machine.map(node_id);
        self.tell(&mut self.told(), |checkers, scene| checkers.turned(scene, node, DaemonChange::Lull));
    }

    /// Everything has come to rest, or should have.
    pub(crate) fn rested(&self) {
        self.tell(&mut self.told(), |checkers, scene| checkers.rested(scene));
    }

    /// Asks what the store holds.
    pub(crate) fn ask<T>(&self, question: impl FnOnce(&StoreModel) -> T) -> T {
        question(&self.told().model)
    }

    /// What a checker has found, if any has.
    pub(crate) fn finding(&self) -> Option<Violation> {
        self.told().checkers.finding()
    }

    /// How much has happened.
    pub(crate) fn tally(&self) -> SimTally {
        let told = self.told();
        let runs = told.model.runs.len() + told.model.spans.len();
        SimTally { units: told.units, runs: runs as u64, launches: told.launches }
    }

    /// Whether a film is made.
    pub(crate) fn is_filmed(&self) -> bool {
        self.told().trace.is_wanted()
    }

    /// The film so far; what follows is not filmed.
    pub(crate) fn take_film(&self) -> Vec<String> {
        std::mem::take(&mut self.told().trace).into_lines()
    }

    /// Shows the checkers what there is.
    fn tell(&self, told: &mut SimRecord, tell: impl FnOnce(&mut CheckerSet, CheckerContext<'_>)) {
        let now = self.store_time(told);
        let SimRecord { model, checkers, is_shared, .. } = told;
        tell(checkers, CheckerContext { model, world: &self.world, at: self.time.now(), now, is_shared: *is_shared });
    }

    fn store_time(&self, told: &SimRecord) -> Instant {
        Instant::from_micros(self.time.day().micros() + told.ahead)
    }

    fn told(&self) -> MutexGuard<'_, SimRecord> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The identity of the node on a machine.
pub(crate) fn node_id(machine: usize) -> NodeId {
    NodeId::from_bits(machine as u128 + 1)
}
