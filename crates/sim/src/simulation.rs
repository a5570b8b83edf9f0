//! One simulation from its first moment to its rest. First everything happens at once: jobs run, people meddle,
//! daemons crash, the store fails. Then the trouble ends, pauses are lifted, and everything has to come to rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::DecisionContext;
use cronhold_schedule::Span;

use crate::chance::SimRandom;
use crate::check::Violation;
use crate::cluster::build_cluster;
use crate::context::{SimContext, SimTally};
use crate::deliberate_bugs::DeliberateBug;
use crate::events::{DaemonFate, TimedEvent};
use crate::executor::TaskOwner;
use crate::faults::FaultPlan;
use crate::machine::SimMachine;
use crate::scenario::{Scenario, ScenarioCut};
use crate::store_model::StoreModel;
use crate::time::WallClock;
use crate::trace::EventTrace;
use crate::workload::OperatorWorkload;

/// How long it may take until everything has come to rest.
const REST_MAX: Span = Span::from_secs(48 * 3_600);
/// Once quiet, it must stay so for two passes of the watchdog.
const QUIET: Span = Span::from_secs(130);
/// Whether everything has come to rest is looked at this often.
const LOOK_EVERY: Span = Span::from_secs(1);
/// Steps of one simulation, of a large one, and at one moment; more would be going round in circles.
const STEPS_MAX: u64 = 6_000_000;
const STEPS_SCALE_MAX: u64 = 100_000_000;
const STEPS_AT_ONCE_MAX: u64 = 100_000;

/// What can be chosen beside the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimSettings {
    /// Machines, each with a node; as many as the seed says, when zero.
    pub nodes: usize,
    /// How long there is trouble; drawn when absent.
    pub length: Option<Span>,
    /// How many jobs; drawn when absent.
    pub jobs: Option<usize>,
    /// Whether it is a large one: a thousand jobs on five machines.
    pub scale: bool,
    /// What is wrong on purpose.
    pub variant: DeliberateBug,
    /// Whether a film is made.
    pub trace: bool,
}

/// What came of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimResult {
    /// The first thing that a checker found.
    pub finding: Option<Violation>,
    /// One line for each event, if wanted.
    pub trace: Vec<String>,
    /// What was going to happen, in words, if a film was wanted.
    pub acts: Vec<String>,
    /// How long it lasted in virtual time.
    pub lasted: Span,
    /// How often a task was let go on.
    pub steps: u64,
    /// How much happened.
    pub tally: SimTally,
}

/// Plays the simulation of a seed.
pub fn simulate(seed: u64, settings: SimSettings, world: &DecisionContext) -> SimResult {
    simulate_cut(seed, settings, &ScenarioCut::default(), world)
}

/// Plays the simulation of a seed without some of its acts.
pub fn simulate_cut(seed: u64, settings: SimSettings, cut: &ScenarioCut, world: &DecisionContext) -> SimResult {
    let mut simulate = Simulation::new(Scenario::draw(seed, settings, cut), settings, cut, world);
    let finding = simulate.perform().err();
    let acts = if settings.trace { simulate.acts_in_words(cut) } else { Vec::new() };
    simulate.machines.iter_mut().for_each(SimMachine::dismiss);
    let Simulation { context, steps, .. } = simulate;
    let finding = context.finding().or(finding);
    if let Some(finding) = &finding {
        context.say("check", || finding.to_string());
    }
    let (lasted, tally) = (context.time.now(), context.tally());
    let SimTally { units, runs, launches } = tally;
    context.say("end", || format!("{units} units, {runs} runs, {launches} programs"));
    context.executor.clear();
    SimResult { finding, trace: context.take_film(), acts, lasted, steps, tally }
}

/// A simulation under way.
pub(crate) struct Simulation {
    pub(crate) scenario: Scenario,
    pub(crate) context: SimContext,
    pub(crate) fault_plan: FaultPlan,
    pub(crate) machines: Vec<SimMachine>,
    /// The clock of a shared store.
    pub(crate) store_clock: Arc<WallClock>,
    pub(crate) workload: OperatorWorkload,
    /// Who goes on next.
    order: SimRandom,
    /// What is going to happen; the number tells those apart that happen at one moment.
    agenda: BTreeMap<(Span, u64), TimedEvent>,
    count: u64,
    /// Daemons to which something happens after so many more of their steps.
    pub(crate) doomed: BTreeMap<usize, (u64, DaemonFate)>,
    /// What people asked for, by the numbers of acts.
    pub(crate) asked: BTreeMap<usize, String>,
    steps: u64,
    steps_at_once: u64,
    steps_max: u64,
}

impl Simulation {
    fn new(scenario: Scenario, settings: SimSettings, cut: &ScenarioCut, world: &DecisionContext) -> Self {
        let context = SimContext::new(world.clone(), scenario.start, EventTrace::new(settings.trace));
        let fault_plan = FaultPlan::new(scenario.usual);
        let (machines, store_clock) = build_cluster(&scenario, &context, &fault_plan, settings.variant);
        context.say("seed", || {
            let Scenario { seed, jobs, until, start, is_shared, usual, .. } = &scenario;
            let store = if *is_shared { "a shared store" } else { "a store of its own" };
            let (nodes, usual) = (machines.len(), Span::from_micros(*usual));
            format!("{seed}: {nodes} nodes, {jobs} jobs, {until} from {start}, {store}, calls take up to {usual}")
        });
        let mut simulate = Self {
            workload: OperatorWorkload::new(context.clone(), &scenario),
            order: SimRandom::of(scenario.seed, "order", 0),
            context,
            fault_plan,
            machines,
            store_clock,
            agenda: BTreeMap::new(),
            count: 0,
            doomed: BTreeMap::new(),
            asked: BTreeMap::new(),
            steps: 0,
            steps_at_once: 0,
            steps_max: if settings.scale { STEPS_SCALE_MAX } else { STEPS_MAX },
            scenario,
        };
        for number in (0..simulate.scenario.acts.len()).filter(|number| !cut.without.contains(number)) {
            simulate.put(simulate.scenario.acts[number].at, TimedEvent::Act(number));
        }
        simulate
    }

    /// Plays to the end.
    fn perform(&mut self) -> Result<(), Violation> {
        self.run_until(self.scenario.until, |_| false)?;
        self.agenda.clear();
        self.end_trouble();
        let limit = self.scenario.until.plus(REST_MAX);
        let is_quiet =
            |simulate: &Self| simulate.context.ask(StoreModel::is_quiet) && simulate.workload.resume().is_none();
        loop {
            self.run_until(limit, is_quiet)?;
            self.run_until(self.context.time.now().plus(QUIET), |_| false)?;
            // Something may have become due just then, and takes its time.
            if is_quiet(self) || self.context.time.now() >= limit {
                break;
            }
        }
        self.context.rested();
        self.context.finding().map_or(Ok(()), Err)
    }

    /// Lets time pass until a moment, or until something holds.
    fn run_until(&mut self, until: Span, is_over: fn(&Self) -> bool) -> Result<(), Violation> {
        let mut look_at = self.context.time.now();
        loop {
            while let Some(whose) = self.context.executor.step(&self.order) {
                self.note_step(whose)?;
            }
            let now = self.context.time.now();
            if look_at <= now {
                look_at = now.plus(LOOK_EVERY);
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
                self.act(then);
            }
        }
    }

    /// Looks at what a step has done, and may let something happen to the daemon that did it.
    fn note_step(&mut self, whose: TaskOwner) -> Result<(), Violation> {
        self.steps += 1;
        self.steps_at_once += 1;
        if let Some(finding) = self.context.finding() {
            return Err(finding);
        }
        if self.steps > self.steps_max || self.steps_at_once > STEPS_AT_ONCE_MAX {
            return Err(Violation { checker: "progress", what: "it goes round in circles".to_owned() });
        }
        if let TaskOwner::Daemon { machine } = whose
            && let Some((steps, doom)) = self.doomed.get_mut(&machine)
        {
            *steps = steps.saturating_sub(1);
            if *steps == 0 {
                let doom = *doom;
                self.meet(machine, doom);
            }
        }
        Ok(())
    }

    /// Something will happen then.
    pub(crate) fn put(&mut self, at: Span, then: TimedEvent) {
        self.count += 1;
        self.agenda.insert((at, self.count), then);
    }

    /// All acts that were not cut and whose time came, in words.
    fn acts_in_words(&self, cut: &ScenarioCut) -> Vec<String> {
        let acts = self.scenario.acts.iter().enumerate();
        let mut played: Vec<_> = acts
            .filter(|(number, act)| !cut.without.contains(number) && act.at <= self.scenario.until)
            .map(|(number, act)| (act.at, number, act))
            .collect();
        played.sort_by_key(|(at, number, _)| (*at, *number));
        let in_words = |(_, number, act): &(Span, usize, &crate::scenario::ScenarioEvent)| match self.asked.get(number)
        {
            Some(asked) => format!("{act}: {asked}"),
            None => act.to_string(),
        };
        played.iter().map(in_words).collect()
    }
}
