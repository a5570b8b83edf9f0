//! Conditions: whether a run that nothing else blocks may start. All conditions of this version are answered from
//! records. A run that has to wait is checked again after the poll interval of its condition.

mod after;
mod peers;
#[cfg(test)]
mod tests;
mod window;

use cronhold_schedule::{Instant, Span};

use super::admission;
use super::draft::UnitDraft;
use super::finish_run;
use crate::job::{Condition, Feature, Requirement};
use crate::record::{JobRecord, JobState, Run};
use crate::run::{Reason, State};

/// How deep conditions may be nested. A run whose conditions are nested deeper fails.
const DEPTH_MAX: usize = 64;
/// The shortest poll interval, whatever a condition says.
const POLL_MIN: Span = Span::from_secs(1);

/// The result of evaluating the conditions of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConditionResult {
    /// The run may start.
    Open,
    /// The run waits and is checked again at this time.
    Wait(Instant),
    /// The run is skipped.
    Skip(Reason),
    /// The run ends in error: a condition cannot be evaluated, or did not hold in time.
    Fail(Reason),
}

/// Evaluates the conditions of a run.
pub(super) fn evaluate(draft: &UnitDraft<'_>, run: &Run, state: &JobState, job: &JobRecord) -> ConditionResult {
    if job.job.conditions.is_empty() {
        return ConditionResult::Open;
    }
    // A condition may end the run, once the records that it depends on are loaded.
    finish_run::prefetch_end(draft.view, run, job);
    ConditionCheck { draft, run, state, job }.all(&job.job.conditions, 0)
}

/// The evaluation of one run's conditions.
#[derive(Clone, Copy)]
struct ConditionCheck<'a> {
    draft: &'a UnitDraft<'a>,
    run: &'a Run,
    /// The job's set of runs as this decision leaves it so far.
    state: &'a JobState,
    job: &'a JobRecord,
}

impl<'a> ConditionCheck<'a> {
    fn now(&self) -> Instant {
        self.draft.at()
    }

    /// Whether a result is final. While records are missing it is not, and the conditions that follow are evaluated
    /// too, so that the records of all of them are loaded in one round.
    fn is_final(&self) -> bool {
        self.draft.view.is_complete()
    }

    fn all(&self, conditions: &[Condition], depth: usize) -> ConditionResult {
        let mut wait = ConditionResult::Open;
        for condition in conditions {
            wait = match (self.condition(condition, depth), wait) {
                (ConditionResult::Open, wait) => wait,
                (ConditionResult::Wait(at), ConditionResult::Wait(before)) => ConditionResult::Wait(at.min(before)),
                (ConditionResult::Wait(at), _) => ConditionResult::Wait(at),
                (over, _) if self.is_final() => return over,
                (_, wait) => wait,
            };
        }
        wait
    }

    /// One condition that holds is enough. While one may still hold, those that failed do not count.
    fn any(&self, conditions: &[Condition], depth: usize) -> ConditionResult {
        let mut best: Option<ConditionResult> = None;
        for condition in conditions {
            best = Some(match (self.condition(condition, depth), best) {
                (ConditionResult::Open, _) if self.is_final() => return ConditionResult::Open,
                (ConditionResult::Wait(at), Some(ConditionResult::Wait(before))) => {
                    ConditionResult::Wait(at.min(before))
                }
                (ConditionResult::Wait(at), _) => ConditionResult::Wait(at),
                (over, before) => before.unwrap_or(over),
            });
        }
        best.unwrap_or(ConditionResult::Open)
    }

    /// Evaluates a condition and its timeout, which is measured from when the run began to wait.
    fn condition(&self, condition: &Condition, depth: usize) -> ConditionResult {
        let gate = self.requirement(&condition.requires, condition.poll, depth);
        let (ConditionResult::Wait(at), Some(timeout)) = (&gate, condition.timeout) else { return gate };
        let deadline = self.run.entered(State::Waiting).unwrap_or_else(|| self.now()).plus(timeout);
        if deadline > self.now() {
            return ConditionResult::Wait(deadline.min(*at));
        }
        let what = self.name(&condition.requires);
        failed(format!("{what} did not hold within {timeout}"))
    }

    fn requirement(&self, requirement: &'a Requirement, poll: Span, depth: usize) -> ConditionResult {
        if depth >= DEPTH_MAX {
            return failed(format!("conditions are nested more than {DEPTH_MAX} deep"));
        }
        let again = self.now().plus(poll.max(POLL_MIN));
        match requirement {
            Requirement::After { job, args, states, within, must_exist } => {
                let asked = after::AfterCondition { job, args, states, within: *within, must_exist: *must_exist };
                self.after(&asked, again)
            }
            Requirement::MaxRunning { pool: Some(_), .. } => failed(Feature::Pool.message()),
            Requirement::MaxRunning { count, same_args, pool: None } => self.max_running(*count, *same_args, again),
            Requirement::SkipDuplicate { states } => {
                let peers = peers::before(self.draft, self.state, self.run, self.job);
                let is_duplicate = peers.iter().any(|peer| states.contains(&peer.state));
                if is_duplicate { ConditionResult::Skip(Reason::Duplicate) } else { ConditionResult::Open }
            }
            Requirement::Probe(probe) => failed(Feature::of_probe(probe).message()),
            Requirement::Window { from, until, zone } => {
                let zone = zone.as_deref().unwrap_or(&self.job.zone);
                match self.draft.view.world.zones.get(zone) {
                    Ok(zone) => window::opens(self.now(), *from, *until, &zone)
                        .map_or(ConditionResult::Open, ConditionResult::Wait),
                    Err(error) => failed(format!("`window`: {error}")),
                }
            }
            Requirement::All(conditions) => self.all(conditions, depth + 1),
            Requirement::Any(conditions) => self.any(conditions, depth + 1),
            // The outer condition has the timeout, because the inner one may never hold.
            Requirement::Not(inner) => match self.requirement(&inner.requires, inner.poll, depth + 1) {
                ConditionResult::Open => ConditionResult::Wait(again),
                ConditionResult::Wait(_) | ConditionResult::Skip(_) => ConditionResult::Open,
                ConditionResult::Fail(reason) => ConditionResult::Fail(reason),
            },
        }
    }

    fn max_running(&self, count: u32, same_args: bool, again: Instant) -> ConditionResult {
        let args = self.run.args.digest();
        // The limit applies to all nodes together.
        let in_the_way = admission::blocking_runs(self.draft, self.run, self.state, |_| true);
        let running = in_the_way.iter().filter(|active| !same_args || active.args == args).count();
        let has_room = u32::try_from(running).is_ok_and(|running| running < count);
        if has_room { ConditionResult::Open } else { ConditionResult::Wait(again) }
    }

    /// The name of a requirement in messages: its key in a job file, and its main value.
    fn name(&self, requirement: &Requirement) -> String {
        match requirement {
            Requirement::After { job, .. } => match self.named_job(job) {
                Ok(job) => format!("`after: {job}`"),
                Err(_) => "`after`".to_owned(),
            },
            Requirement::MaxRunning { count, .. } => format!("`max_running: {count}`"),
            Requirement::SkipDuplicate { .. } => "`skip_duplicate`".to_owned(),
            Requirement::Probe(_) => "an external check".to_owned(),
            Requirement::Window { from, until, .. } => format!("`window: {from}–{until}`"),
            Requirement::All(_) => "`all`".to_owned(),
            Requirement::Any(_) => "`any`".to_owned(),
            Requirement::Not(inner) => format!("`not` {}", self.name(&inner.requires)),
        }
    }
}

fn failed(why: String) -> ConditionResult {
    ConditionResult::Fail(Reason::Condition(why))
}
