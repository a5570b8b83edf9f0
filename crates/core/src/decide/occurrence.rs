//! The runs of one occurrence: one, or one for each node. They are made in one unit, so that an occurrence has its whole
//! outcome or none; claims on time and from a backlog make them here alike.

use std::collections::BTreeSet;

use cronhold_schedule::Instant;

use super::admission;
use super::conditions::{self, ConditionResult};
use super::draft::UnitDraft;
use super::placement::{self, NODES_MAX};
use super::run_lifecycle;
use super::timetable::Timetable;
use crate::ids::{JobUid, NodeId, RunId};
use crate::policy::overlap::Admission;
use crate::record::{Actor, JobState, Key, Run, ScheduleId};
use crate::run::Reason;
use crate::view::{Halt, View};

/// A run that an occurrence is about to have, and whether it may start.
pub(super) struct Candidate {
    run: Run,
    /// None, when it has ended already because it could not be bound.
    pub(super) admission: Option<Admission>,
}

/// The id of an attempt at an occurrence, or of one on a node.
pub(super) fn run_id(
    uid: JobUid,
    schedule: &ScheduleId,
    nominal: Instant,
    attempt: u32,
    target: Option<NodeId>,
) -> RunId {
    match target {
        Some(node) => RunId::on_node(uid, schedule.as_str(), nominal, attempt, node),
        None => RunId::derived(uid, schedule.as_str(), nominal, attempt),
    }
}

/// The runs that an occurrence may have already: one for all, and one for each of its places. A node that could run it
/// when the clock stood there before may not be able to now, so all that are there count.
fn ids(view: &View<'_>, table: &Timetable<'_>, nominal: Instant, places: &[Option<NodeId>]) -> BTreeSet<RunId> {
    let mut all: BTreeSet<Option<NodeId>> = places.iter().copied().chain([None]).collect();
    if table.job.job.nodes.is_each() {
        all.extend(view.world.nodes.iter().take(NODES_MAX).map(|node| Some(node.id)));
        all.insert(Some(view.stamp.owner.node));
    }
    all.into_iter().map(|place| table.run_id(nominal, place)).collect()
}

/// A run that the occurrence has already. Nodes that came later do not get one of their own then: the occurrence is
/// claimed as a whole. A single run is assumed to be absent, because almost always it is; where there may be many, any of
/// which would fail the commit, they are loaded.
pub(super) fn existing_run(
    draft: &UnitDraft<'_>,
    table: &Timetable<'_>,
    nominal: Instant,
    places: &[Option<NodeId>],
) -> Option<RunId> {
    let view = draft.view;
    let is_there = |id: &RunId| match table.job.job.nodes.is_each() {
        true => view.run(*id).is_some(),
        false => view.assume_absent_unless_loaded(&Key::Run(*id)).is_some(),
    };
    ids(view, table, nominal, places).into_iter().find(is_there)
}

/// Whether the occurrence has a run already.
pub(super) fn has_run(draft: &UnitDraft<'_>, table: &Timetable<'_>, nominal: Instant) -> bool {
    existing_run(draft, table, nominal, &placement::targets_of_occurrence(draft.view, table.job)).is_some()
}

/// Makes a run for each place and asks whether it may start. Nothing is decided about the others before all are asked, so
/// that none of them is in the way of another.
pub(super) fn create_candidates(
    draft: &mut UnitDraft<'_>,
    state: &mut JobState,
    table: &Timetable<'_>,
    nominal: Instant,
    actor: &Actor,
    places: &[Option<NodeId>],
) -> Result<Vec<Candidate>, Halt> {
    let mut found = Vec::with_capacity(places.len());
    for place in places {
        let run = table.create_run(draft, state, nominal, actor.clone(), *place)?;
        let admission = match run.state.is_finished() {
            true => None,
            false => Some(admission_with_conditions(draft, &run, state, table)),
        };
        found.push(Candidate { run, admission });
    }
    Ok(found)
}

/// Whether a run may start; conditions that rule it out count as well, so that such skips too are a few records.
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

/// The one reason for which none of them runs. Then the occurrence is skipped as a whole.
pub(super) fn common_skip_reason(candidates: &[Candidate]) -> Option<Reason> {
    let reason = |candidate: &Candidate| match &candidate.admission {
        Some(Admission::Skip(reason)) => Some(reason.clone()),
        _ => None,
    };
    let Some(first) = candidates.first() else { return Some(Reason::NoEligibleNode) };
    let first = reason(first)?;
    candidates.iter().all(|candidate| reason(candidate).as_ref() == Some(&first)).then_some(first)
}

/// Lets the runs go their ways, and answers with what they have become.
pub(super) fn apply_admissions(
    draft: &mut UnitDraft<'_>,
    state: &mut JobState,
    table: &Timetable<'_>,
    candidates: Vec<Candidate>,
) -> Result<Vec<Run>, Halt> {
    let mut runs = Vec::with_capacity(candidates.len());
    for Candidate { run, admission } in candidates {
        runs.push(match admission {
            Some(admission) => run_lifecycle::apply_admission(draft, run, state, table.job, admission)?,
            None => run,
        });
    }
    Ok(runs)
}
