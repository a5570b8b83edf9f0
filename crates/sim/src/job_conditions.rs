//! Draws params, args and conditions of jobs. Every condition of a job has a timeout, so that everything can come to
//! rest.

use std::collections::BTreeMap;

use cronhold_core::job::{Condition, Param, Probe, Requirement, TimeoutOutcome};
use cronhold_core::record::PoolName;
use cronhold_core::template::Template;
use cronhold_core::{Job, JobId, State};
use cronhold_schedule::Span;

use crate::jobs::JobRecipe;
use crate::random::SimRandom;

/// The param of jobs that have one.
const PARAM: &str = "x";
/// Its values; the first one is the default.
const VALUES: [&str; 3] = ["a", "b", "c"];
/// Files that conditions wait for.
const FILES: [&str; 2] = ["/a", "/b"];
/// Pools that jobs share.
const POOLS: [&str; 2] = ["p", "q"];
/// The poll interval of conditions. It is long, so that a run which depends on it is late.
const POLL: Span = Span::from_secs(50);

/// Draws args for a run of a job that may have the param.
pub(crate) fn draw_args(job: Option<&Job>, rng: &SimRandom) -> BTreeMap<String, String> {
    match job.is_some_and(|job| job.params.contains_key(PARAM)) && !rng.one_in(4) {
        true => BTreeMap::from([(PARAM.to_owned(), (*rng.pick(&VALUES)).to_owned())]),
        false => BTreeMap::new(),
    }
}

impl JobRecipe {
    /// Gives some jobs a param, and their schedules args.
    pub(crate) fn draw_params(&self, job: &mut Job) {
        if !self.rng.one_in(3) {
            return;
        }
        let default = Some(VALUES[0].to_owned());
        let choices = VALUES.iter().map(|value| (*value).to_owned()).collect();
        job.params = cronhold_core::NameMap::from([(PARAM.to_owned(), Param { default, choices, ..Param::default() })]);
        let has_param = job.clone();
        for schedule in &mut job.schedules {
            schedule.args = draw_args(Some(&has_param), &self.rng).into_iter().collect();
        }
    }

    /// Gives some jobs conditions.
    pub(crate) fn draw_conditions(&self, job: &mut Job) {
        let count = if self.rng.one_in(3) { self.rng.between(1, 2) } else { 0 };
        job.conditions = (0..count).map(|_| self.condition(0)).collect();
    }

    fn condition(&self, depth: u32) -> Condition {
        let rng = &self.rng;
        let few = || u32::try_from(rng.between(1, 3)).expect("small");
        let nested = || (0..rng.between(1, 3)).map(|_| self.condition(depth + 1)).collect();
        let requires = match rng.between(0, if depth == 0 { 10 } else { 7 }) {
            0..=3 => self.after(),
            4 => Requirement::MaxRunning { count: few(), same_args: true, pool: None },
            5 => {
                let pool = rng.one_in(2).then(|| PoolName::parse(rng.pick::<&str>(&POOLS)).expect("a name"));
                Requirement::MaxRunning { count: few(), same_args: false, pool }
            }
            6 => Requirement::SkipDuplicate { states: Requirement::DUPLICATE_STATES_DEFAULT.to_vec() },
            7 => Requirement::Probe(Probe::File(Template::literal(*rng.pick(&FILES)))),
            8 => Requirement::Any(nested()),
            9 => Requirement::All(nested()),
            // The oracle of the checkers is exact for outcomes, and for the others only if they must hold.
            _ => Requirement::Not(Box::new(Condition { poll: POLL, ..Condition::new(self.after()) })),
        };
        let timeout = (depth == 0).then(|| rng.secs(20, 400));
        let on_timeout = if rng.one_in(2) { TimeoutOutcome::Skip } else { TimeoutOutcome::Error };
        Condition { requires, timeout, poll: POLL, on_timeout }
    }

    fn after(&self) -> Requirement {
        let rng = &self.rng;
        let job: &JobId = rng.pick(&self.names);
        let states = match rng.between(0, 4) {
            0 => vec![State::Running],
            1 => vec![State::Failure, State::Error],
            2 => vec![State::Success, State::Failure, State::Error, State::Skipped],
            _ => vec![State::Success],
        };
        let template = |text: &str| Template::parse(text).expect("plain text");
        let args = match rng.one_in(3) {
            true => BTreeMap::from([(PARAM.to_owned(), template(rng.pick::<&str>(&VALUES)))]),
            false => BTreeMap::new(),
        };
        let within = rng.one_in(2).then(|| rng.secs(20, 600));
        Requirement::After { job: template(job.as_str()), args, states, within, must_exist: rng.one_in(8) }
    }
}
