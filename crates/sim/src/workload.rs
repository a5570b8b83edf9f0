//! What happens on a stage: jobs of all kinds, and people who meddle with them, both drawn from the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::command::{Command, Provided};
use cronhold_core::record::{Run, Source};
use cronhold_core::signal::Signal;
use cronhold_core::{Job, JobId, JobUid, RunId, State};

use crate::chance::Chance;
use crate::jobs::Recipe;
use crate::mirror::Mirror;
use crate::stage::Stage;

/// Jobs and the people who meddle with them.
#[derive(Debug)]
pub(crate) struct Workload {
    stage: Stage,
    chance: Chance,
    recipe: Recipe,
    names: Vec<JobId>,
    /// The jobs as somebody wanted them last, so that a change can change one thing.
    wanted: BTreeMap<JobId, Job>,
}

impl Workload {
    /// A workload of so many jobs.
    pub(crate) fn new(stage: Stage, chance: Chance, recipe: Recipe, count: usize) -> Self {
        let name = |number| JobId::parse(&format!("job{number}")).expect("a word and a number");
        let names = (1..=count).map(name).collect();
        Self { stage, chance, recipe, names, wanted: BTreeMap::new() }
    }

    /// The commands that put all jobs in place.
    pub(crate) fn opening(&mut self) -> Vec<Command> {
        self.names.clone().into_iter().map(|name| self.put(name)).collect()
    }

    /// Something that somebody wants now; nothing, when there is nothing that it could be done to.
    pub(crate) fn meddle(&mut self) -> Option<Command> {
        let job = self.chance.pick(&self.names).clone();
        let why = "drawn".to_owned();
        let command = match self.chance.between(0, 19) {
            0 | 1 => Command::Run { job, args: BTreeMap::new(), id: self.run_id(), at: None },
            2 => {
                let at = self.stage.time.day().plus(self.chance.secs(1, 120));
                Command::Run { job, args: BTreeMap::new(), id: self.run_id(), at: Some(at) }
            }
            3 | 4 => Command::Start { run: self.a_run(before_program)? },
            5 => Command::Skip { run: self.a_run(before_program)?, why },
            6 | 7 => Command::Stop { run: self.a_run(with_program)? },
            8 => Command::Signal { run: self.a_run(with_program)?, signal: Signal::KILL },
            9 => {
                let state = *self.chance.pick(&[State::Success, State::Failure, State::Error, State::Skipped]);
                Command::Mark { run: self.a_run(after_program)?, state, why }
            }
            10 => Command::Rerun { run: self.a_run(after_program)?, id: self.run_id(), anew: self.chance.one_in(2) },
            11 | 12 => Command::Pause { job: Some(job), why },
            13 | 14 => Command::Resume { job: Some(job) },
            15 => Command::Pause { job: None, why },
            16 => Command::Resume { job: None },
            17 => Command::RemoveJob { id: job, source: Source::Api, provided: Provided::Any },
            _ => self.put(job),
        };
        Some(command)
    }

    /// What lifts a pause, if there is one.
    pub(crate) fn resume(&self) -> Option<Command> {
        self.stage.ask(|mirror| {
            if mirror.pauses.is_paused() {
                return Some(Command::Resume { job: None });
            }
            let paused = mirror.states.values().find(|state| state.pauses.is_paused());
            paused.map(|state| Command::Resume { job: Some(state.job.clone()) })
        })
    }

    /// Makes a job or changes it.
    fn put(&mut self, id: JobId) -> Command {
        let job = match self.wanted.get(&id) {
            Some(job) if !self.chance.one_in(3) => self.recipe.change(job),
            _ => self.recipe.job(),
        };
        self.wanted.insert(id.clone(), job.clone());
        let uid = JobUid::from_bits(u128::from(self.chance.bits()));
        Command::PutJob { id, job: Arc::new(job), source: Source::Api, uid, provided: Provided::Any }
    }

    fn run_id(&self) -> RunId {
        let mut random = [0; 10];
        random[..8].copy_from_slice(&self.chance.bits().to_be_bytes());
        RunId::from_random(self.stage.time.day(), random)
    }

    /// A run of some kind that is still stored, not always of the kind that is asked for: people make mistakes.
    fn a_run(&self, is_wanted: fn(&Run) -> bool) -> Option<RunId> {
        let is_any = self.chance.one_in(12);
        self.stage.ask(|mirror: &Mirror| {
            let stored = mirror.runs.values().filter(|run| !mirror.gone.contains(&run.id));
            let fitting: BTreeSet<RunId> = stored.filter(|run| is_any || is_wanted(run)).map(|run| run.id).collect();
            let fitting: Vec<RunId> = fitting.into_iter().collect();
            (!fitting.is_empty()).then(|| *self.chance.pick(&fitting))
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
