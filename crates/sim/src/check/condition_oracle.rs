//! Whether the conditions of a run hold, judged from the model of the store and independently of the decisions of the
//! product. Simulated jobs name other jobs and args literally.

use std::collections::BTreeMap;

use cronhold_core::job::{Condition, Requirement};
use cronhold_core::record::{JobRecord, Run};
use cronhold_core::template::Template;
use cronhold_core::{Args, JobId, RunId, State};
use cronhold_schedule::{Instant, Span};

use crate::store_model::StoreModel;

/// Judges the conditions of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConditionOracle<'a> {
    pub(super) model: &'a StoreModel,
    pub(super) run: &'a Run,
    pub(super) job: &'a JobRecord,
    /// The time of the decision.
    pub(super) now: Instant,
}

impl ConditionOracle<'_> {
    /// Whether all conditions of the job hold.
    pub(super) fn holds(&self) -> bool {
        self.job.job.conditions.iter().all(|condition| self.condition(condition))
    }

    fn condition(&self, condition: &Condition) -> bool {
        match &condition.requires {
            Requirement::After { job, args, states, within, .. } => self.after(job, args, states, *within),
            Requirement::MaxRunning { count, same_args, pool } => {
                let active = match pool {
                    Some(pool) => self.model.pools.get(pool).map_or(&[][..], |pool| &pool.active),
                    None => self.model.states.get(&self.run.job).map_or(&[][..], |state| &state.active),
                };
                let counts = |run: RunId| {
                    let other = self.model.runs.get(&run).filter(|other| other.state.has_program());
                    other.is_some_and(|other| !same_args || other.args == self.run.args)
                };
                let running = active.iter().filter(|active| active.run != self.run.id && counts(active.run)).count();
                running < *count as usize
            }
            Requirement::SkipDuplicate { .. } => !self.peers(&self.run.job, &self.run.args).any(|peer| {
                let is_each = self.job.job.nodes.is_each() && peer.target != self.run.target;
                peer.state.has_program() && !is_each
            }),
            Requirement::All(all) => all.iter().all(|one| self.condition(one)),
            Requirement::Any(any) => any.is_empty() || any.iter().any(|one| self.condition(one)),
            Requirement::Not(inner) => !self.condition(inner),
            Requirement::Probe(_) | Requirement::Window { .. } => true,
        }
    }

    fn after(
        &self,
        job: &Template,
        named: &BTreeMap<String, Template>,
        states: &[State],
        within: Option<Span>,
    ) -> bool {
        let job = JobId::parse(job.text()).expect("a literal name");
        let Some(target) = self.model.jobs.get(&job) else { return false };
        let named: BTreeMap<String, String> =
            named.iter().map(|(name, value)| (name.clone(), value.text().to_owned())).collect();
        let own = self.run.args.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let Ok(args) = Args::bind(&target.job.params, &named, &own) else { return false };
        let oldest = within.map(|within| self.now.minus(within));
        let is_recent = |at: Instant| oldest.is_none_or(|oldest| at >= oldest);
        let outcomes = match args.is_empty() {
            true => self.model.states.get(&job).and_then(|state| state.outcomes),
            false => self.model.identities.get(&(job.clone(), args.clone())).map(|identity| identity.outcomes),
        };
        let has_outcome = |state: &State| {
            let outcome = outcomes.and_then(|outcomes| outcomes.of(*state));
            outcome.is_some_and(|outcome| is_recent(outcome.at))
        };
        states.iter().any(has_outcome) || self.peers(&job, &args).any(|peer| states.contains(&peer.state))
    }

    /// Other unfinished runs of a job with these args.
    fn peers<'s>(&'s self, job: &JobId, args: &'s Args) -> impl Iterator<Item = &'s Run> {
        let runs = self.model.unfinished.get(job).into_iter().flatten().filter_map(|run| self.model.runs.get(run));
        runs.map(|run| &**run).filter(move |run| run.id != self.run.id && run.args == *args)
    }
}

/// Whether the result may change without a change in the store, because it depends on the time.
pub(super) fn depends_on_time(conditions: &[Condition]) -> bool {
    conditions.iter().any(|condition| match &condition.requires {
        Requirement::After { within, must_exist, .. } => within.is_some() || *must_exist,
        Requirement::All(nested) | Requirement::Any(nested) => depends_on_time(nested),
        Requirement::Not(inner) => depends_on_time(std::slice::from_ref(inner)),
        Requirement::Probe(_) | Requirement::Window { .. } => true,
        Requirement::MaxRunning { .. } | Requirement::SkipDuplicate { .. } => false,
    })
}
