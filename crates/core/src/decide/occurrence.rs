//! The runs of one occurrence: one, or one for each node. They are created in one unit, so an occurrence has its whole
//! outcome or none. Claims on time and from a backlog both create them here.

use std::collections::BTreeSet;

use cronhold_schedule::Instant;

use super::admission;
use super::conditions::{self, ConditionResult};
use super::draft::UnitDraft;
use super::placement::{self, NODES_MAX};
use super::run_lifecycle;
use super::timetable::Timetable;
use crate::ids::{NodeId, RunId};
use crate::policy::overlap::Admission;
use crate::record::{Actor, JobState, RecordKey, Run};
use crate::run::Reason;
use crate::view::{DecisionView, Halt};

/// A run that an occurrence is about to get, and whether it may start.
pub(super) struct RunCandidate {
    run: Run,
    /// `None` if the run has ended already, because its program could not be resolved.
    pub(super) admission: Option<Admission>,
}

/// The ids of the runs that an occurrence may have already: one without a target, and one for each node. If the clock
/// was set back, nodes that are not eligible now may have run it, so all live nodes count.
fn ids(view: &DecisionView<'_>, table: &Timetable<'_>, nominal: Instant, places: &[Option<NodeId>]) -> BTreeSet<RunId> {
    let mut all: BTreeSet<Option<NodeId>> = places.iter().copied().chain([None]).collect();
    if table.job.job.nodes.is_each() {
        all.extend(view.world.nodes.iter().take(NODES_MAX).map(|node| Some(node.id)));
        all.insert(Some(view.stamp.owner.node));
    }
    all.into_iter().map(|place| table.run_id(nominal, place)).collect()
}

/// A run that the occurrence has already. An occurrence is claimed as a whole, so nodes that joined later do not get a
/// run of their own. A single run is assumed to be absent, because it almost always is; the many runs of a `nodes:
/// each` job are loaded, because any of them would fail the commit.
pub(super) fn existing_run(
    draft: &UnitDraft<'_>,
    table: &Timetable<'_>,
    nominal: Instant,
    places: &[Option<NodeId>],
) -> Option<RunId> {
    let view = draft.view;
    let is_there = |id: &RunId| match table.job.job.nodes.is_each() {
        true => view.run(*id).is_some(),
        false => view.assume_absent_unless_loaded(&RecordKey::Run(*id)).is_some(),
    };
    ids(view, table, nominal, places).into_iter().find(is_there)
}

/// Whether the occurrence has a run already.
pub(super) fn has_run(draft: &UnitDraft<'_>, table: &Timetable<'_>, nominal: Instant) -> bool {
    existing_run(draft, table, nominal, &placement::targets_of_occurrence(draft.view, table.job)).is_some()
}

/// Creates a run for each target and checks whether it may start. All are checked before any starts, so that they do
/// not block each other.
pub(super) fn create_candidates(
    draft: &mut UnitDraft<'_>,
    state: &mut JobState,
    table: &Timetable<'_>,
    nominal: Instant,
    actor: &Actor,
    places: &[Option<NodeId>],
) -> Result<Vec<RunCandidate>, Halt> {
    let mut found = Vec::with_capacity(places.len());
    for place in places {
        let run = table.create_run(draft, state, nominal, actor.clone(), *place)?;
        let admission = match run.state.is_finished() {
            true => None,
            false => Some(admission_with_conditions(draft, &run, state, table)),
        };
        found.push(RunCandidate { run, admission });
    }
    Ok(found)
}

/// Whether a run may start. A condition that skips the run counts too, so that many such skips become one span.
fn admission_with_conditions(draft: &UnitDraft<'_>, run: &Run, state: &JobState, table: &Timetable<'_>) -> Admission {
    let job = table.job;
    let admission = admission::admission_of(draft, run, state, job, true);
    if admission == Admission::Start
        && placement::is_for_this_node(draft.view, run)
        && !job.job.conditions.is_empty()
        && let ConditionResult::Skip(reason) = conditions::evaluate(draft, run, state, job)
    {
        return Admission::Skip(reason);
    }
    admission
}

/// The reason for which all candidates are skipped, if there is a common one. Then the occurrence is skipped as a
/// whole.
pub(super) fn common_skip_reason(candidates: &[RunCandidate]) -> Option<Reason> {
    let reason = |candidate: &RunCandidate| match &candidate.admission {
        Some(Admission::Skip(reason)) => Some(reason.clone()),
        _ => None,
    };
    let Some(first) = candidates.first() else { return Some(Reason::NoEligibleNode) };
    let first = reason(first)?;
    candidates.iter().all(|candidate| reason(candidate).as_ref() == Some(&first)).then_some(first)
}

/// Applies the admissions of all candidates, and returns their runs.
pub(super) fn apply_admissions(
    draft: &mut UnitDraft<'_>,
    state: &mut JobState,
    table: &Timetable<'_>,
    candidates: Vec<RunCandidate>,
) -> Result<Vec<Run>, Halt> {
    let mut runs = Vec::with_capacity(candidates.len());
    for RunCandidate { run, admission } in candidates {
        runs.push(match admission {
            Some(admission) => run_lifecycle::apply_admission(draft, run, state, table.job, admission)?,
            None => run,
        });
    }
    Ok(runs)
}
