//! Conditions: whether a run that nothing else holds back may start. Records answer all of them that this version can
//! ask; a run that has to wait looks again after the poll interval of its condition.

mod after;
mod peers;
#[cfg(test)]
mod tests;
mod window;

use cronhold_schedule::{Instant, Span};

use super::admit;
use super::draft::Draft;
use crate::job::{Condition, Feature, Requirement};
use crate::record::{JobRecord, JobState, Key, Run};
use crate::run::{Reason, State};
use crate::view::Halt;

/// Conditions may be nested so deep; what is deeper is not asked.
const DEPTH_MAX: usize = 64;
/// The shortest time between two looks, whatever a condition says.
const POLL_MIN: Span = Span::from_secs(1);

/// What the conditions of a run say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Gate {
    /// It may start.
    Open,
    /// Not yet; look again then.
    Wait(Instant),
    /// It does not run.
    Skip(Reason),
    /// It cannot be found out, or did not come true in time.
    Break(Reason),
}

/// Asks the conditions of a run.
pub(super) fn check(draft: &Draft<'_>, run: &Run, state: &JobState, job: &JobRecord) -> Result<Gate, Halt> {
    let asking = Asking { draft, run, state, job };
    draft.view.need(asking.needs())?;
    draft.view.need(asking.needs_of_targets()?)?;
    asking.all(&job.job.conditions, 0)
}

/// What [`check`] will look at, as far as it can be told before anything of that is loaded.
pub(super) fn needs(draft: &Draft<'_>, run: &Run, state: &JobState, job: &JobRecord) -> Vec<Key> {
    Asking { draft, run, state, job }.needs()
}

/// The run that asks, and what it asks.
#[derive(Clone, Copy)]
struct Asking<'a> {
    draft: &'a Draft<'a>,
    run: &'a Run,
    /// The runs of its job as they are in this decision.
    state: &'a JobState,
    job: &'a JobRecord,
}

impl<'a> Asking<'a> {
    fn now(&self) -> Instant {
        self.draft.at()
    }

    fn needs(&self) -> Vec<Key> {
        if self.job.job.conditions.is_empty() {
            return Vec::new();
        }
        // A condition may end the run, and that looks at its identity.
        let mut keys = vec![Key::Identity(self.run.job.clone(), self.run.args.clone())];
        each(&self.job.job.conditions, 0, &mut |requirement| match requirement {
            Requirement::After { job, states, must_exist, .. } => {
                let Ok(job) = self.named_job(job) else { return };
                if after::asks_for_peers(states, *must_exist) {
                    keys.push(Key::JobState(job.clone()));
                }
                keys.push(Key::Job(job));
            }
            Requirement::SkipDuplicate { .. } => keys.extend(peers::keys_of_rivals(self.state, self.run, self.job)),
            _ => {}
        });
        keys
    }

    fn all(&self, conditions: &[Condition], depth: usize) -> Result<Gate, Halt> {
        let mut wait = Gate::Open;
        for condition in conditions {
            wait = match (self.condition(condition, depth)?, wait) {
                (Gate::Open, wait) => wait,
                (Gate::Wait(at), Gate::Wait(before)) => Gate::Wait(at.min(before)),
                (Gate::Wait(at), _) => Gate::Wait(at),
                (over, _) => return Ok(over),
            };
        }
        Ok(wait)
    }

    /// One that holds is enough; while one may still come true, those that cannot do not count.
    fn any(&self, conditions: &[Condition], depth: usize) -> Result<Gate, Halt> {
        let mut best: Option<Gate> = None;
        for condition in conditions {
            best = Some(match (self.condition(condition, depth)?, best) {
                (Gate::Open, _) => return Ok(Gate::Open),
                (Gate::Wait(at), Some(Gate::Wait(before))) => Gate::Wait(at.min(before)),
                (Gate::Wait(at), _) => Gate::Wait(at),
                (over, before) => before.unwrap_or(over),
            });
        }
        Ok(best.unwrap_or(Gate::Open))
    }

    /// A condition with its timeout, which counts from when the run began to wait.
    fn condition(&self, condition: &Condition, depth: usize) -> Result<Gate, Halt> {
        let gate = self.requirement(&condition.requires, condition.poll, depth)?;
        let (Gate::Wait(at), Some(timeout)) = (&gate, condition.timeout) else { return Ok(gate) };
        let deadline = self.run.entered(State::Waiting).unwrap_or_else(|| self.now()).plus(timeout);
        if deadline > self.now() {
            return Ok(Gate::Wait(deadline.min(*at)));
        }
        let what = self.name(&condition.requires);
        Ok(broken(format!("{what} did not hold within {timeout}")))
    }

    fn requirement(&self, requirement: &'a Requirement, poll: Span, depth: usize) -> Result<Gate, Halt> {
        if depth >= DEPTH_MAX {
            return Ok(broken(format!("conditions are nested more than {DEPTH_MAX} deep")));
        }
        let again = self.now().plus(poll.max(POLL_MIN));
        match requirement {
            Requirement::After { job, args, states, within, must_exist } => {
                let asked = after::After { job, args, states, within: *within, must_exist: *must_exist };
                self.after(&asked, again)
            }
            Requirement::MaxRunning { pool: Some(_), .. } => Ok(broken(Feature::Pool.message())),
            Requirement::MaxRunning { count, same_args, pool: None } => self.max_running(*count, *same_args, again),
            Requirement::SkipDuplicate { states } => {
                let peers = peers::before(self.draft, self.state, self.run, self.job)?;
                let is_duplicate = peers.iter().any(|peer| states.contains(&peer.state));
                Ok(if is_duplicate { Gate::Skip(Reason::Duplicate) } else { Gate::Open })
            }
            Requirement::Probe(probe) => Ok(broken(Feature::of_probe(probe).message())),
            Requirement::Window { from, until, zone } => {
                let zone = zone.as_deref().unwrap_or(&self.job.zone);
                Ok(match self.draft.view.world.zones.get(zone) {
                    Ok(zone) => window::opens(self.now(), *from, *until, &zone).map_or(Gate::Open, Gate::Wait),
                    Err(error) => broken(format!("`window`: {error}")),
                })
            }
            Requirement::All(conditions) => self.all(conditions, depth + 1),
            Requirement::Any(conditions) => self.any(conditions, depth + 1),
            // How long to wait is said by the outer condition: the inner one may well never hold.
            Requirement::Not(inner) => Ok(match self.requirement(&inner.requires, inner.poll, depth + 1)? {
                Gate::Open => Gate::Wait(again),
                Gate::Wait(_) | Gate::Skip(_) => Gate::Open,
                Gate::Break(reason) => Gate::Break(reason),
            }),
        }
    }

    fn max_running(&self, count: u32, same_args: bool, again: Instant) -> Result<Gate, Halt> {
        let args = self.run.args.digest();
        // The limit is one for all nodes together.
        let in_the_way = admit::in_the_way(self.draft, self.run, self.state, |_| true)?;
        let running = in_the_way.iter().filter(|active| !same_args || active.args == args).count();
        let has_room = u32::try_from(running).is_ok_and(|running| running < count);
        Ok(if has_room { Gate::Open } else { Gate::Wait(again) })
    }

    /// What a message calls a requirement: its key in a job, and what tells it apart.
    fn name(&self, requirement: &Requirement) -> String {
        match requirement {
            Requirement::After { job, .. } => match self.named_job(job) {
                Ok(job) => format!("`after: {job}`"),
                Err(_) => "`after`".to_owned(),
            },
            Requirement::MaxRunning { count, .. } => format!("`max_running: {count}`"),
            Requirement::SkipDuplicate { .. } => "`skip_duplicate`".to_owned(),
            Requirement::Probe(_) => "a look at the outside".to_owned(),
            Requirement::Window { from, until, .. } => format!("`window: {from}–{until}`"),
            Requirement::All(_) => "`all`".to_owned(),
            Requirement::Any(_) => "`any`".to_owned(),
            Requirement::Not(inner) => format!("`not` {}", self.name(&inner.requires)),
        }
    }
}

fn broken(why: String) -> Gate {
    Gate::Break(Reason::Condition(why))
}

/// Calls `f` with every requirement, those inside others too.
fn each<'c>(conditions: &'c [Condition], depth: usize, f: &mut dyn FnMut(&'c Requirement)) {
    for Condition { requires, .. } in conditions.iter().filter(|_| depth < DEPTH_MAX) {
        f(requires);
        match requires {
            Requirement::All(inner) | Requirement::Any(inner) => each(inner, depth + 1, f),
            Requirement::Not(inner) => each(std::slice::from_ref(&**inner), depth + 1, f),
            _ => {}
        }
    }
}
