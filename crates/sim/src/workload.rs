//! The workload of a simulation: jobs of all kinds, and operators who send commands. Each job and each command has its
//! own random stream.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::command::{Command, Precondition};
use cronhold_core::record::{JobSource, Run};
use cronhold_core::signal::Signal;
use cronhold_core::{Job, JobId, JobUid, NodeId, RunId, State};
use cronhold_schedule::Instant;

use crate::context::SimContext;
use crate::job_actions;
use crate::job_batching::{draw_batching, draw_id};
use crate::job_conditions::draw_args;
use crate::jobs::JobRecipe;
use crate::random::SimRandom;
use crate::scenario::Scenario;
use crate::store_model::StoreModel;

/// Jobs, and the commands of operators.
#[derive(Debug)]
pub(crate) struct OperatorWorkload {
    context: SimContext,
    seed: u64,
    recipe: JobRecipe,
    /// Whether clocks are set, so that one job has to be due often enough for that to matter.
    has_clock_steps: bool,
    names: Vec<JobId>,
    /// Whether jobs have actions.
    has_actions: bool,
    /// Whether jobs have batching policies.
    has_triggers: bool,
    /// How many definitions were drawn.
    definitions: u64,
    /// The last definition of each job, so that a command can change one property.
    wanted: BTreeMap<JobId, Job>,
}

impl OperatorWorkload {
    /// The workload of a scenario.
    pub(crate) fn new(context: SimContext, scenario: &Scenario) -> Self {
        let name = |number| JobId::parse(&format!("job{number}")).expect("a word and a number");
        let recipe = JobRecipe {
            rng: SimRandom::of(scenario.seed, "jobs", 0),
            zones: Arc::clone(&context.world.zones),
            start: scenario.start,
            end: scenario.start.plus(scenario.until),
            shortest: scenario.shortest,
            has_locks: scenario.has_locks,
            names: (1..=scenario.jobs).map(name).collect(),
        };
        Self {
            context,
            seed: scenario.seed,
            recipe,
            has_clock_steps: scenario.has_clock_steps,
            has_actions: scenario.has_actions,
            has_triggers: scenario.has_triggers,
            definitions: 0,
            names: (1..=scenario.jobs).map(name).collect(),
            wanted: BTreeMap::new(),
        }
    }

    /// Draws the command that creates a job.
    pub(crate) fn create_job(&mut self, job: usize) -> Command {
        let rng = SimRandom::of(self.seed, "job", job as u64);
        let id = self.names[job].clone();
        if self.has_clock_steps && job == 0 {
            let job = self.recipe.frequent_job();
            return self.put_definition(id, job, &rng);
        }
        self.put(id, &rng)
    }

    /// Draws a command for a scenario event; `None` if nothing exists that it could apply to.
    pub(crate) fn draw_command(&mut self, event: usize) -> Option<Command> {
        let rng = &SimRandom::of(self.seed, "meddler", event as u64);
        let job = rng.pick(&self.names).clone();
        let why = "drawn".to_owned();
        let command = match rng.between(0, 19) {
            0 | 1 => Command::Run { args: self.args(&job, rng), job, id: self.run_id(rng), at: None, stop: None },
            2 => {
                let at = self.context.time.day().plus(rng.secs(1, 120));
                Command::Run { args: self.args(&job, rng), job, id: self.run_id(rng), at: Some(at), stop: None }
            }
            3 | 4 => Command::Start { run: self.a_run(rng, before_program)? },
            5 => Command::Skip { run: self.a_run(rng, before_program)?, why },
            6 | 7 => Command::Stop { run: self.a_run(rng, with_program)? },
            8 => Command::Signal { run: self.a_run(rng, with_program)?, signal: Signal::KILL },
            9 => {
                let state = *rng.pick(&[State::Success, State::Failure, State::Error, State::Skipped]);
                Command::Mark { run: self.a_run(rng, after_program)?, state, why }
            }
            10 => {
                let run = self.a_run(rng, after_program)?;
                Command::Rerun { run, id: self.run_id(rng), current: rng.one_in(2) }
            }
            11 | 12 => Command::Pause { job: Some(job), why, until: self.end_of_pause(rng) },
            13 | 14 => Command::Resume { job: Some(job) },
            15 => Command::Pause { job: None, why, until: self.end_of_pause(rng) },
            16 => Command::Resume { job: None },
            17 => Command::RemoveJob { id: job, source: JobSource::Api, provided: Precondition::Any },
            _ => self.put(job, rng),
        };
        Some(command)
    }

    /// Draws a trigger of a job, or the removal of pending ones.
    pub(crate) fn draw_trigger(&self, event: usize) -> Command {
        let rng = &SimRandom::of(self.seed, "trigger", event as u64);
        let job = rng.pick(&self.names).clone();
        match rng.between(0, 19) {
            0 => Command::RemoveTriggers { job, trigger: rng.one_in(2).then(|| draw_id(rng)) },
            _ => {
                let (args, trigger, id) = (self.args(&job, rng), draw_id(rng), self.run_id(rng));
                Command::Trigger { job, args, trigger, message: None, id }
            }
        }
    }

    /// Draws when a pause ends by itself.
    fn end_of_pause(&self, rng: &SimRandom) -> Option<Instant> {
        rng.one_in(2).then(|| self.context.time.day().plus(rng.secs(1, 300)))
    }

    /// The command that lifts a pause; `None` if nothing is paused.
    pub(crate) fn resume(&self) -> Option<Command> {
        self.context.query(|model| {
            if model.pauses.is_paused() {
                return Some(Command::Resume { job: None });
            }
            let paused = model.states.values().find(|state| state.pauses.is_paused());
            paused.map(|state| Command::Resume { job: Some(state.job.clone()) })
        })
    }

    /// The command that skips a run that none of these nodes may start; it would wait forever.
    pub(crate) fn give_up(&self, nodes: &[(NodeId, &BTreeSet<String>)]) -> Option<Command> {
        self.context.query(|model| {
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

    /// Draws the command that creates or changes a job.
    fn put(&mut self, id: JobId, rng: &SimRandom) -> Command {
        let recipe = self.recipe.with(rng.fork());
        let job = match self.wanted.get(&id) {
            Some(job) if !rng.one_in(3) => recipe.change(job),
            _ => recipe.job(),
        };
        self.put_definition(id, job, rng)
    }

    fn put_definition(&mut self, id: JobId, mut job: Job, rng: &SimRandom) -> Command {
        self.definitions += 1;
        if self.has_triggers {
            draw_batching(&mut job, &SimRandom::of(self.seed, "batching", self.definitions));
        }
        if self.has_actions {
            let rng = SimRandom::of(self.seed, "actions", self.definitions);
            job_actions::draw_actions(&mut job, &id, &self.names, &rng);
        }
        self.wanted.insert(id.clone(), job.clone());
        let uid = JobUid::from_bits(u128::from(rng.bits()));
        Command::PutJob { id, job: Arc::new(job), source: JobSource::Api, uid, provided: Precondition::Any }
    }

    fn args(&self, job: &JobId, rng: &SimRandom) -> BTreeMap<String, String> {
        draw_args(self.wanted.get(job), rng)
    }

    fn run_id(&self, rng: &SimRandom) -> RunId {
        let mut random = [0; 10];
        random[..8].copy_from_slice(&rng.bits().to_be_bytes());
        RunId::from_random(self.context.time.day(), random)
    }

    /// Draws a stored run or span of skips that matches `is_wanted`. Sometimes any of them, because operators make
    /// mistakes.
    fn a_run(&self, rng: &SimRandom, is_wanted: fn(&Run) -> bool) -> Option<RunId> {
        let is_any = rng.one_in(12);
        self.context.query(|model: &StoreModel| {
            let runs = model.runs.values().filter(|run| is_any || is_wanted(run)).map(|run| run.id);
            // Lists of runs contain spans, so operators name them too.
            let spans = model.spans.values().filter(|span| is_any || is_wanted(&span.to_listed_run()));
            let stored = runs.chain(spans.map(|span| span.id)).filter(|id| !model.gone.contains(id));
            let fitting: Vec<RunId> = stored.collect::<BTreeSet<_>>().into_iter().collect();
            (!fitting.is_empty()).then(|| *rng.pick(&fitting))
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
