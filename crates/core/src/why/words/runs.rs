//! Sentences about one run: its outcome and its log.

use super::super::reasons::{because, by};
use super::super::wall::rough;
use super::{ExplanationWriter, name};
use crate::policy::lease::lost_after;
use crate::record::{Run, ScheduleId};
use crate::run::{Reason, State};

/// The most entries of a log that are shown, the latest ones.
const LOG_SHOWN: usize = 50;

impl ExplanationWriter<'_> {
    /// The state or outcome of a run, as the predicate of a sentence about it.
    pub(super) fn fate(&self, run: &Run) -> String {
        let wall = self.wall(run.schedule.as_ref());
        let since = run.entered(run.state).map_or_else(|| "an unknown time".to_owned(), |at| wall.at(at));
        let why =
            run.reason.as_ref().map(|reason| format!(", because {}", because(reason, self.world))).unwrap_or_default();
        if let Some(marked) = self.mark(run) {
            return marked;
        }
        let tried_again = run.retried_by.map(|retry| format!("; `{}` retries it", self.run_name(retry)));
        let on = run.owner.map(|owner| format!(" on {}", self.node_name(owner.node))).unwrap_or_default();
        let for_node = run.target.map(|node| format!(" for {}", self.node_name(node))).unwrap_or_default();
        let due = run.due.map(|due| wall.at(due));
        match run.state {
            State::Scheduled => {
                let at = due.unwrap_or_else(|| wall.at(run.nominal));
                match run.retry_of {
                    Some(failed) => {
                        format!("is attempt {} of `{}` and waits for {at}", run.attempt, self.run_name(failed))
                    }
                    None => format!("waits for {at}"),
                }
            }
            State::Waiting => format!("has waited since {since}{for_node}"),
            State::Starting => format!("has been starting since {since}{on}{}", self.silence(run)),
            State::Running => {
                let limit = due.map(|due| format!("; it may run until {due}")).unwrap_or_default();
                let ago = run.entered(State::Running).map(|at| self.ago(at)).unwrap_or_default();
                format!("has been running since {since}, for {ago}{on}{limit}{}", self.silence(run))
            }
            State::Stopping => {
                let why = run.ending.as_ref().map(|reason| format!(", because {}", because(reason, self.world)));
                let kill = due.map(|due| format!("; it is killed at {due}")).unwrap_or_default();
                format!("has been stopping since {since}{}{on}{kill}{}", why.unwrap_or_default(), self.silence(run))
            }
            State::Success | State::Failure | State::Error | State::Skipped => {
                format!("{}{why}{}{}", self.ending(run), self.late_note(run), tried_again.unwrap_or_default())
            }
        }
    }

    /// How a run ended, before the reason.
    fn ending(&self, run: &Run) -> String {
        let wall = self.wall(run.schedule.as_ref());
        let started = run.entered(State::Running).or_else(|| run.entered(State::Starting));
        let verb = match run.state {
            State::Success => "succeeded",
            State::Failure => "failed",
            State::Error => "ended in error",
            _ => return "did not start".to_owned(),
        };
        match (started, run.finished()) {
            (Some(started), Some(finished)) => {
                format!("started at {} and {verb} after {}", wall.at(started), rough(finished.since(started)))
            }
            (None, Some(finished)) => format!("{verb} at {}", wall.at(finished)),
            (_, None) => verb.to_owned(),
        }
    }

    /// What happens to a run whose node sends no heartbeats; empty if its node is alive.
    fn silence(&self, run: &Run) -> String {
        let node = run.owner.and_then(|owner| self.known.nodes.iter().find(|node| node.id == owner.node));
        let Some(node) = node.filter(|node| self.why.now > node.gone) else { return String::new() };
        let (beat, after) = (self.wall(run.schedule.as_ref()).at(node.beat), lost_after(run));
        let ended = if run.terms.lease.is_some() { ", by when its program has been ended" } else { "" };
        format!("; the last heartbeat of its node was at {beat}, and {after} later it is lost{ended}")
    }

    /// The late result of a program whose run had been declared lost; empty if there is none.
    fn late_note(&self, run: &Run) -> String {
        let Some(last) = run.log.last().filter(|last| last.is_late_result()) else { return String::new() };
        format!("; at {} its node reported that {}", self.wall(run.schedule.as_ref()).at(last.at), last.message)
    }

    /// How an operator marked a finished run; `None` if none did.
    fn mark(&self, run: &Run) -> Option<String> {
        let [.., before, last] = run.log.as_slice() else { return None };
        // A late result does not change the state.
        if !before.state.is_finished() || last.is_late_result() {
            return None;
        }
        let at = self.wall(run.schedule.as_ref()).at(last.at);
        let why = match &run.reason {
            Some(Reason::ByOperator(why)) if !why.is_empty() => format!(": {why}"),
            _ => String::new(),
        };
        Some(format!("was {} until {} marked it {} at {at}{why}", before.state, by(&last.actor), run.state))
    }

    /// The log of a run, one entry per line.
    pub(super) fn log(&mut self, run: &Run) {
        let wall = self.wall(run.schedule.as_ref());
        let first = run.log.len().saturating_sub(LOG_SHOWN);
        for entry in &run.log[first..] {
            let message = if entry.message.is_empty() { String::new() } else { format!(": {}", entry.message) };
            self.detail(format!("{}  {}, by {}{message}", wall.stamp(entry.at), entry.state, by(&entry.actor)));
        }
    }

    /// Adds what the user can do about the outcome of a run.
    pub(super) fn advise_on(&mut self, run: &Run, schedule: Option<&ScheduleId>) {
        let run_name = name(run);
        let advice = match (run.state, &run.reason) {
            (State::Failure | State::Error, _) if run.retried_by.is_some() => return,
            (State::Failure, Some(Reason::LockLost)) => {
                "its node could not reach the store in time; a longer `ttl` in the job bridges that".to_owned()
            }
            (State::Failure, _) => {
                format!("`cronhold logs {run_name}` shows its output, `cronhold rerun {run_name}` runs it again")
            }
            (State::Error, Some(Reason::Unbound(_) | Reason::Condition(_) | Reason::NotLaunched(_))) => {
                format!("correct the job, then `cronhold rerun {run_name}` runs it again")
            }
            (State::Error, Some(Reason::StartUnknown)) => format!(
                "check whether it ran, then `cronhold rerun {run_name}` runs it again; `on_lost: retry` does so \
                 automatically"
            ),
            (State::Error, Some(Reason::NoResponse(_))) => format!(
                "the service may have acted on the request; `cronhold rerun {run_name}` sends it again with another \
                 `Idempotency-Key`"
            ),
            (State::Error, _) => format!("`cronhold rerun {run_name}` runs it again"),
            (State::Skipped, Some(reason)) => return self.advise_on_skip(reason, schedule.is_some()),
            _ => return,
        };
        self.advise(advice);
    }

    /// Adds what the user can do about a skip.
    pub(super) fn advise_on_skip(&mut self, reason: &Reason, is_of_schedule: bool) {
        let job = &self.why.job;
        let advice = match reason {
            Reason::Overlap | Reason::Lock => {
                "with `overlap: queue` it waits instead; `cronhold lint` reports when a job takes too long".to_owned()
            }
            Reason::Missed | Reason::Paused if is_of_schedule => {
                format!(
                    "`cronhold backfill {job}` runs what was missed; `catch_up: {{policy: all}}` does so automatically"
                )
            }
            Reason::NoEligibleNode => {
                "`cronhold nodes` shows the nodes and their labels; `nodes` in the job requires some".to_owned()
            }
            _ => return,
        };
        self.advise(advice);
    }
}
