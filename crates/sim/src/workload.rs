//! What happens on a stage: jobs of all kinds, and people who meddle with them. Each job and each of the people has
//! chance to itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::command::{Command, Precondition};
use cronhold_core::record::{JobSource, Run};
use cronhold_core::signal::Signal;
use cronhold_core::{Job, JobId, JobUid, NodeId, RunId, State};

use crate::chance::SimRandom;
use crate::context::SimContext;
use crate::jobs::JobRecipe;
use crate::scenario::Scenario;
use crate::store_model::StoreModel;

/// Jobs and the people who meddle with them.
#[derive(Debug)]
pub(crate) struct OperatorWorkload {
    context: SimContext,
    seed: u64,
    recipe: JobRecipe,
    names: Vec<JobId>,
    /// The jobs as somebody wanted them last, so that a change can change one thing.
    wanted: BTreeMap<JobId, Job>,
}

impl OperatorWorkload {
    /// The workload of a plot.
    pub(crate) fn new(context: SimContext, scenario: &Scenario) -> Self {
        let name = |number| JobId::parse(&format!("job{number}")).expect("a word and a number");
        let recipe = JobRecipe {
            chance: SimRandom::of(scenario.seed, "jobs", 0),
            zones: Arc::clone(&context.world.zones),
            start: scenario.start,
            end: scenario.start.plus(scenario.until),
            shortest: scenario.shortest,
            keeps_all: scenario.keeps_all,
            has_locks: scenario.has_locks,
        };
        Self {
            context,
            seed: scenario.seed,
            recipe,
            names: (1..=scenario.jobs).map(name).collect(),
            wanted: BTreeMap::new(),
        }
    }

    /// Puts a job for the first time.
    pub(crate) fn opening(&mut self, job: usize) -> Command {
        let chance = SimRandom::of(self.seed, "job", job as u64);
        self.put(self.names[job].clone(), &chance)
    }

    /// Something that somebody wants now, by an act of this number; nothing, when there is nothing that it could be done
    /// to.
    pub(crate) fn meddle(&mut self, act: usize) -> Option<Command> {
        let chance = &SimRandom::of(self.seed, "meddler", act as u64);
        let job = chance.pick(&self.names).clone();
        let why = "drawn".to_owned();
        let command = match chance.between(0, 19) {
            0 | 1 => Command::Run { job, args: BTreeMap::new(), id: self.run_id(chance), at: None },
            2 => {
                let at = self.context.time.day().plus(chance.secs(1, 120));
                Command::Run { job, args: BTreeMap::new(), id: self.run_id(chance), at: Some(at) }
            }
            3 | 4 => Command::Start { run: self.a_run(chance, before_program)? },
            5 => Command::Skip { run: self.a_run(chance, before_program)?, why },
            6 | 7 => Command::Stop { run: self.a_run(chance, with_program)? },
            8 => Command::Signal { run: self.a_run(chance, with_program)?, signal: Signal::KILL },
            9 => {
                let state = *chance.pick(&[State::Success, State::Failure, State::Error, State::Skipped]);
                Command::Mark { run: self.a_run(chance, after_program)?, state, why }
            }
            10 => {
                let run = self.a_run(chance, after_program)?;
                Command::Rerun { run, id: self.run_id(chance), anew: chance.one_in(2) }
            }
            11 | 12 => Command::Pause { job: Some(job), why },
            13 | 14 => Command::Resume { job: Some(job) },
            15 => Command::Pause { job: None, why },
            16 => Command::Resume { job: None },
            17 => Command::RemoveJob { id: job, source: JobSource::Api, provided: Precondition::Any },
            _ => self.put(job, chance),
        };
        Some(command)
    }

    /// What lifts a pause, if there is one.
    pub(crate) fn resume(&self) -> Option<Command> {
        self.context.ask(|model| {
            if model.pauses.is_paused() {
                return Some(Command::Resume { job: None });
            }
            let paused = model.states.values().find(|state| state.pauses.is_paused());
            paused.map(|state| Command::Resume { job: Some(state.job.clone()) })
        })
    }

    /// What ends the waiting of a run that none of these nodes may start: that is nobody's mistake, and it would wait for
    /// ever.
    pub(crate) fn give_up(&self, nodes: &[(NodeId, &BTreeSet<String>)]) -> Option<Command> {
        self.context.ask(|model| {
            let unfinished = model.unfinished.values().flatten().filter_map(|run| model.runs.get(run));
            let is_stranded = |run: &&Arc<Run>| {
                let Some(job) = model.jobs.get(&run.job) else { return false };
                let is_fit = |(node, labels): &(NodeId, &BTreeSet<String>)| {
                    run.target.is_none_or(|target| target == *node) && job.job.nodes.allow(labels)
                };
                before_program(run) && !nodes.iter().any(is_fit)
            };
            let why = "no node".to_owned();
            unfinished.into_iter().find(is_stranded).map(|run| Command::Skip { run: run.id, why })
        })
    }

    /// Makes a job or changes it.
    fn put(&mut self, id: JobId, chance: &SimRandom) -> Command {
        let recipe = self.recipe.with(chance.fork());
        let job = match self.wanted.get(&id) {
            Some(job) if !chance.one_in(3) => recipe.change(job),
            _ => recipe.job(),
        };
        self.wanted.insert(id.clone(), job.clone());
        let uid = JobUid::from_bits(u128::from(chance.bits()));
        Command::PutJob { id, job: Arc::new(job), source: JobSource::Api, uid, provided: Precondition::Any }
    }

    fn run_id(&self, chance: &SimRandom) -> RunId {
        let mut random = [0; 10];
        random[..8].copy_from_slice(&chance.bits().to_be_bytes());
        RunId::from_random(self.context.time.day(), random)
    }

    /// A run of some kind that is still stored, not always of the kind that is asked for: people make mistakes.
    fn a_run(&self, chance: &SimRandom, is_wanted: fn(&Run) -> bool) -> Option<RunId> {
        let is_any = chance.one_in(12);
        self.context.ask(|model: &StoreModel| {
            let runs = model.runs.values().filter(|run| is_any || is_wanted(run)).map(|run| run.id);
            // People see spans among the runs and name them too.
            let spans = model.spans.values().filter(|span| is_any || is_wanted(&span.to_listed_run()));
            let stored = runs.chain(spans.map(|span| span.id)).filter(|id| !model.gone.contains(id));
            let fitting: Vec<RunId> = stored.collect::<BTreeSet<_>>().into_iter().collect();
            (!fitting.is_empty()).then(|| *chance.pick(&fitting))
        })
    }
}

fn before_program(run: &Run) -> bool {
    matches!(run.state, State::Scheduled | State::Waiting)
}

fn with_program(run: &Run) -> bool {
    run.state.has_program()
}

fn after_program(run: &Run) -> bool {
    run.state.is_finished()
}
