//! One simulation from start to rest. In the fault phase jobs run, operators send commands, daemons crash and the store
//! fails. Then all faults end, pauses are lifted, and everything must come to rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::DecisionContext;
use cronhold_schedule::Span;

use crate::check::Violation;
use crate::cluster::{SimCluster, build_cluster};
use crate::context::{SimContext, SimTally};
use crate::deliberate_bugs::DeliberateBug;
use crate::events::{DaemonFate, TimedEvent};
use crate::executor::TaskOwner;
use crate::faults::FaultPlan;
use crate::machine::KEPT;
use crate::machine::SimMachine;
use crate::random::SimRandom;
use crate::rollback::RollbackServer;
use crate::scenario::{Scenario, ScenarioCut};
use crate::store_model::StoreModel;
use crate::time::WallClock;
use crate::trace::EventTrace;
use crate::workload::OperatorWorkload;

/// Maximum time from the end of the fault phase until everything is at rest.
const REST_MAX: Span = Span::from_secs(48 * 3_600);
/// Once quiet, the simulation must stay quiet for two passes of the watchdog.
const QUIET: Span = Span::from_secs(130);
/// One of this many seeds goes on until everything that can expire has expired.
const AGED_EVERY: u64 = 10;
/// Nodes walk through everything that can expire every ten minutes, and need two walks for a removed job.
const AGED_WALKS: Span = Span::from_secs(3 * 660);
/// Interval between checks for rest.
const REST_CHECK_EVERY: Span = Span::from_secs(1);
/// Step limits of a simulation, of a large one, and of one moment in time. More steps mean that tasks wake each other
/// without progress.
const STEPS_MAX: u64 = 6_000_000;
const STEPS_SCALE_MAX: u64 = 100_000_000;
const STEPS_AT_ONCE_MAX: u64 = 100_000;

/// Settings of a simulation besides the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimSettings {
    /// Number of machines, each with one node; 0 draws it from the seed.
    pub nodes: usize,
    /// Duration of the fault phase; `None` draws it from the seed.
    pub length: Option<Span>,
    /// Number of jobs; `None` draws it from the seed.
    pub jobs: Option<usize>,
    /// Whether to run a large simulation: a thousand jobs on five machines.
    pub scale: bool,
    /// The bug to inject.
    pub bug: DeliberateBug,
    /// Whether to record a trace.
    pub trace: bool,
}

/// The result of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimResult {
    /// The first violation that a checker found.
    pub finding: Option<Violation>,
    /// One line per event; empty unless a trace was requested.
    pub trace: Vec<String>,
    /// The scenario events as text; empty unless a trace was requested.
    pub events: Vec<String>,
    /// Duration in virtual time.
    pub lasted: Span,
    /// Number of polls of tasks.
    pub steps: u64,
    pub tally: SimTally,
}

/// Runs the simulation of a seed.
pub fn simulate(seed: u64, settings: SimSettings, world: &DecisionContext) -> SimResult {
    simulate_cut(seed, settings, &ScenarioCut::default(), world)
}

/// Runs the simulation of a seed without the events that `cut` removes.
pub fn simulate_cut(seed: u64, settings: SimSettings, cut: &ScenarioCut, world: &DecisionContext) -> SimResult {
    let mut simulation = Simulation::new(Scenario::draw(seed, settings, cut), settings, cut, world);
    let finding = simulation.run().err();
    let events = if settings.trace { simulation.describe_events(cut) } else { Vec::new() };
    simulation.machines.iter_mut().for_each(SimMachine::dismiss);
    let Simulation { context, steps, .. } = simulation;
    let finding = context.finding().or(finding);
    if let Some(finding) = &finding {
        context.log("check", || finding.to_string());
    }
    let (lasted, tally) = (context.time.now(), context.tally());
    let SimTally { units, runs, launches, .. } = tally;
    context.log("end", || format!("{units} units, {runs} runs, {launches} programs"));
    context.executor.clear();
    SimResult { finding, trace: context.take_trace(), events, lasted, steps, tally }
}

/// A running simulation.
pub(crate) struct Simulation {
    pub(crate) scenario: Scenario,
    pub(crate) context: SimContext,
    pub(crate) fault_plan: FaultPlan,
    pub(crate) machines: Vec<SimMachine>,
    /// Clock of the store.
    pub(crate) store_clock: Arc<WallClock>,
    /// The store's part of a recovery, if the scenario has rollbacks.
    pub(crate) rollback_server: Option<Arc<RollbackServer>>,
    pub(crate) workload: OperatorWorkload,
    /// Decides which ready task runs next.
    order: SimRandom,
    /// Pending events by time. The number makes keys unique and keeps insertion order.
    agenda: BTreeMap<(Span, u64), TimedEvent>,
    count: u64,
    /// Fates of daemons, each with the number of their steps until it applies.
    pub(crate) fates: BTreeMap<usize, (u64, DaemonFate)>,
    /// Operator commands as text, by the number of their scenario event.
    pub(crate) commands: BTreeMap<usize, String>,
    steps: u64,
    steps_at_once: u64,
    steps_max: u64,
}

impl Simulation {
    fn new(scenario: Scenario, settings: SimSettings, cut: &ScenarioCut, world: &DecisionContext) -> Self {
        let context = SimContext::new(world.clone(), &scenario, EventTrace::new(settings.trace));
        let fault_plan = FaultPlan::new(scenario.usual, settings.bug == DeliberateBug::NoHints);
        let SimCluster { machines, store_clock, rollback_server } =
            build_cluster(&scenario, &context, &fault_plan, settings.bug);
        context.log("seed", || {
            let Scenario { seed, jobs, until, start, is_shared, .. } = &scenario;
            let store = if *is_shared { "a shared store" } else { "a local store" };
            let (nodes, usual) = (machines.len(), context.usual);
            format!("{seed}: {nodes} nodes, {jobs} jobs, {until} from {start}, {store}, calls take up to {usual}")
        });
        let mut simulation = Self {
            workload: OperatorWorkload::new(context.clone(), &scenario),
            order: SimRandom::of(scenario.seed, "order", 0),
            context,
            fault_plan,
            machines,
            store_clock,
            rollback_server,
            agenda: BTreeMap::new(),
            count: 0,
            fates: BTreeMap::new(),
            commands: BTreeMap::new(),
            steps: 0,
            steps_at_once: 0,
            steps_max: if settings.scale { STEPS_SCALE_MAX } else { STEPS_MAX },
            scenario,
        };
        for number in (0..simulation.scenario.events.len()).filter(|number| !cut.without.contains(number)) {
            simulation.put(simulation.scenario.events[number].at, TimedEvent::Scenario(number));
        }
        simulation
    }

    /// Runs to the end.
    fn run(&mut self) -> Result<(), Violation> {
        self.run_until(self.scenario.until, |_| false)?;
        self.agenda.clear();
        self.end_faults();
        let limit = self.scenario.until.plus(REST_MAX);
        let is_quiet = |simulation: &Self| {
            simulation.context.query(StoreModel::is_quiet) && simulation.workload.resume().is_none()
        };
        loop {
            self.run_until(limit, is_quiet)?;
            self.run_until(self.context.time.now().plus(QUIET), |_| false)?;
            // Something may have become due in the meantime and still be running.
            if is_quiet(self) || self.context.time.now() >= limit {
                break;
            }
        }
        self.context.at_rest();
        self.context.finding().map_or(Ok(()), Err)?;
        if self.scenario.seed.is_multiple_of(AGED_EVERY) && self.steps_max == STEPS_MAX {
            self.run_until(self.context.time.now().plus(KEPT).plus(AGED_WALKS), |_| false)?;
            self.context.aged();
        }
        self.context.finding().map_or(Ok(()), Err)
    }

    /// Runs until a moment, or until `is_over` returns true.
    fn run_until(&mut self, until: Span, is_over: fn(&Self) -> bool) -> Result<(), Violation> {
        let mut check_at = self.context.time.now();
        loop {
            while let Some(owner) = self.context.executor.step(&self.order) {
                self.note_step(owner)?;
            }
            let now = self.context.time.now();
            if check_at <= now {
                check_at = now.plus(REST_CHECK_EVERY);
                if is_over(self) {
                    return Ok(());
                }
            }
            let then = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = self.context.time.next().into_iter().chain(then).min().filter(|next| *next <= until)
            else {
                self.context.time.advance(until);
                return Ok(());
            };
            self.steps_at_once = if next > now { 0 } else { self.steps_at_once };
            self.context.time.advance(next);
            while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= next) {
                let then = entry.remove();
                self.apply_event(then);
            }
        }
    }

    /// Checks the findings after a step, and applies the fate of the daemon that took it.
    fn note_step(&mut self, owner: TaskOwner) -> Result<(), Violation> {
        self.steps += 1;
        self.steps_at_once += 1;
        if let Some(finding) = self.context.finding() {
            return Err(finding);
        }
        if self.steps > self.steps_max || self.steps_at_once > STEPS_AT_ONCE_MAX {
            return Err(Violation { checker: "progress", what: "reached the step limit".to_owned() });
        }
        if let TaskOwner::Daemon { machine } = owner
            && let Some((steps, fate)) = self.fates.get_mut(&machine)
        {
            *steps = steps.saturating_sub(1);
            if *steps == 0 {
                let fate = *fate;
                self.apply_fate(machine, fate);
            }
        }
        Ok(())
    }

    /// Schedules an event.
    pub(crate) fn put(&mut self, at: Span, then: TimedEvent) {
        self.count += 1;
        self.agenda.insert((at, self.count), then);
    }

    /// The scenario events that were not cut and whose time has come, as text.
    fn describe_events(&self, cut: &ScenarioCut) -> Vec<String> {
        let events = self.scenario.events.iter().enumerate();
        let mut applied: Vec<_> = events
            .filter(|(number, event)| !cut.without.contains(number) && event.at <= self.scenario.until)
            .map(|(number, event)| (event.at, number, event))
            .collect();
        applied.sort_by_key(|(at, number, _)| (*at, *number));
        let describe =
            |(_, number, event): &(Span, usize, &crate::scenario::ScenarioEvent)| match self.commands.get(number) {
                Some(command) => format!("{event}: {command}"),
                None => event.to_string(),
            };
        applied.iter().map(describe).collect()
    }
}
