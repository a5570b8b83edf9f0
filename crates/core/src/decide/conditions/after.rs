//! The condition `after`: a run of a job with certain args is, or has ended, in one of these states. Outcomes are read
//! from records that outlive pruned runs.

use std::collections::BTreeMap;

use cronhold_schedule::{Instant, Span};

use super::{ConditionCheck, ConditionVerdict, Evaluation, peers};
use crate::args::Args;
use crate::decide::bind;
use crate::ids::JobId;
use crate::record::{Blocker, JobState};
use crate::run::{Reason, State};
use crate::template::Template;

/// The fields of an `after` condition.
pub(super) struct AfterCondition<'a> {
    pub(super) job: &'a Template,
    pub(super) args: &'a BTreeMap<String, Template>,
    pub(super) states: &'a [State],
    pub(super) within: Option<Span>,
    pub(super) must_exist: bool,
}

/// Whether the condition depends on runs that have not ended, beside recorded outcomes.
fn asks_for_peers(states: &[State], must_exist: bool) -> bool {
    must_exist || states.iter().any(|state| !state.is_finished())
}

impl ConditionCheck<'_> {
    pub(super) fn after(&self, asked: &AfterCondition<'_>, again: Instant) -> Evaluation {
        let job = &match self.named_job(asked.job) {
            Ok(job) => job,
            Err(reason) => return reason.into(),
        };
        // Read before the job's args are known, so that both are loaded in one round.
        let state = self.state_of(job);
        let args = &match self.target_args(job, asked.args) {
            Ok(Some(args)) => args,
            Ok(None) if asked.must_exist => {
                return Evaluation::failed("the job that `after` names does not exist".to_owned());
            }
            Ok(None) => return Evaluation::new(ConditionVerdict::Wait(again), vec![Blocker::MissingJob(job.clone())]),
            Err(reason) => return reason.into(),
        };
        let latest = self.draft.outcomes(&state, args);
        let found = |result, runs| {
            let states = asked.states.to_vec();
            let last = latest.last();
            let after = Blocker::After { job: job.clone(), args: args.clone(), states, runs, last, is_negated: false };
            Evaluation::new(result, vec![after])
        };
        let oldest = asked.within.map(|within| self.now().minus(within));
        let outcomes = asked.states.iter().filter_map(|state| latest.of(*state)).map(|outcome| outcome.at);
        if let Some(latest) = outcomes.filter(|at| oldest.is_none_or(|oldest| *at >= oldest)).max() {
            let holds_until = asked.within.map(|within| latest.plus(within).plus(Span::from_micros(1)));
            return Evaluation { holds_until, ..found(ConditionVerdict::Holds, Vec::new()) };
        }
        if !asks_for_peers(asked.states, asked.must_exist) {
            return found(ConditionVerdict::Wait(again), Vec::new());
        }
        let peers = peers::of(self.draft, &state, args, self.run.id);
        let runs = peers.iter().map(|peer| peer.id).collect();
        if peers.iter().any(|peer| asked.states.contains(&peer.state)) {
            return found(ConditionVerdict::Holds, runs);
        }
        if asked.must_exist && peers.is_empty() {
            let blank = if args.is_empty() { "" } else { " " };
            let found = match latest.last() {
                None => format!("there is no run of {job}{blank}{args}"),
                Some((ended, at)) => format!("the last run of {job}{blank}{args} ended in {ended} at {at}"),
            };
            return Evaluation::failed(format!("{found}, and none is pending"));
        }
        found(ConditionVerdict::Wait(again), runs)
    }

    /// The job that a template names for this run.
    pub(super) fn named_job(&self, job: &Template) -> Result<JobId, Reason> {
        let unbound = |error: String| Reason::Unbound(format!("`after.job`: {error}"));
        let name = self.bound(job).map_err(unbound)?;
        JobId::parse(&name).map_err(|error| unbound(error.to_string()))
    }

    /// The args of the runs that the condition asks about: those that it does not name are taken from this run, as far
    /// as the job has such params. `None` when there is no such job.
    fn target_args(&self, job: &JobId, args: &BTreeMap<String, Template>) -> Result<Option<Args>, Reason> {
        let Some(record) = self.draft.view.job(job) else { return Ok(None) };
        let mut given = BTreeMap::new();
        for (name, template) in args {
            match self.bound(template) {
                Ok(value) => drop(given.insert(name.clone(), value)),
                Err(error) => return Err(Reason::Unbound(format!("`after.args.{name}`: {error}"))),
            }
        }
        let own = self.run.args.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let args = Args::bind(&record.job.params, &given, &own);
        args.map(Some).map_err(|errors| Reason::Unbound(format!("`after.args`: {errors}")))
    }

    fn state_of(&self, job: &JobId) -> JobState {
        if *job == self.run.job { self.state.clone() } else { self.draft.job_state(job) }
    }

    fn bound(&self, template: &Template) -> Result<String, String> {
        if template.is_literal() {
            return Ok(template.text().to_owned());
        }
        template.bind(&bind::bindings(self.run, self.draft.view.world)).map_err(|error| error.to_string())
    }
}
