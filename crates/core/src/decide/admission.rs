//! Whether a run may start now, as far as its node, other runs of its job and its lock go. Conditions are asked last, by
//! whoever starts it.

use std::collections::BTreeSet;

use super::draft::UnitDraft;
use super::placement;
use super::run_lifecycle::is_lock_taken;
use crate::ids::RunId;
use crate::job::{Overlap, QUEUE_LIMIT_DEFAULT};
use crate::policy::overlap::{Admission, Standing, admit, admit_first};
use crate::record::{Active, JobRecord, JobState, Run};
use crate::run::Reason;

/// Whether a run that waits may start now. `is_new` says that it has not been held yet. Whoever makes a run for another
/// node decides whether others are in its way; when it starts is for that node to say.
pub(super) fn admission_of(
    draft: &UnitDraft<'_>,
    run: &Run,
    state: &JobState,
    job: &JobRecord,
    is_new: bool,
) -> Admission {
    let may_start = placement::may_start(draft.view, run, job);
    let is_for_another = is_new && !placement::is_for_this_node(draft.view, run);
    if !may_start && !is_for_another {
        return Admission::Wait;
    }
    let standing = obstacles(draft, run, state, job);
    let is_queue = matches!(job.job.overlap, Overlap::Queue { .. });
    let admission = match is_new {
        true => admit(job.job.overlap, standing),
        // Those that wait in a row start in their order.
        false if is_queue && !is_first_in_queue(run, state, job) => Admission::Wait,
        false => admit_first(job.job.overlap, standing),
    };
    if admission != Admission::Start {
        return admission;
    }
    if state.active.len() >= JobState::ACTIVE_MAX && !state.is_active(run.id) {
        let has_room = !is_new || standing.queued < QUEUE_LIMIT_DEFAULT;
        return if has_room { Admission::Wait } else { Admission::Skip(Reason::QueueFull) };
    }
    Admission::Start
}

/// What stands in a run's way.
fn obstacles(draft: &UnitDraft<'_>, run: &Run, state: &JobState, job: &JobRecord) -> Standing {
    let count = |runs: usize| u32::try_from(runs).unwrap_or(u32::MAX);
    let active = match job.job.overlap {
        Overlap::Allow => 0,
        _ => count(
            blocking_runs(draft, run, state, |active| placement::can_overlap(job, active.target, run.target)).len(),
        ),
    };
    let is_before = |queued: &&crate::record::Queued| {
        queued.run != run.id && placement::can_overlap(job, queued.target, run.target)
    };
    let queued = count(state.queue.iter().filter(is_before).count());
    Standing { active, queued, lock_is_held: is_lock_taken(draft, run) }
}

/// Whether nobody is before a run in its row. Those in line wait for a retry, so a retry does not wait for its place.
fn is_first_in_queue(run: &Run, state: &JobState, job: &JobRecord) -> bool {
    let head = state.queue.iter().find(|queued| placement::can_overlap(job, queued.target, run.target));
    state.is_active(run.id) || head.is_none_or(|head| head.run == run.id)
}

/// Active runs that a run has to wait for: all others that count, for most. A retry counts as active itself while it
/// waits, so two of them could wait for each other; among those the one that was there first goes first.
pub(super) fn blocking_runs(
    draft: &UnitDraft<'_>,
    run: &Run,
    state: &JobState,
    counts: impl Fn(&Active) -> bool,
) -> Vec<Active> {
    let later = later_active(run, state);
    let earlier = &state.active[..state.active.len() - later.len()];
    let mut found: Vec<Active> =
        earlier.iter().filter(|active| active.run != run.id && counts(active)).copied().collect();
    for active in later.iter().filter(|active| counts(active)) {
        if draft.run(active.run).is_some_and(|other| other.state.has_program()) {
            found.push(*active);
        }
    }
    found
}

/// Those that became active after a run that is active itself; none, for one that is not.
fn later_active<'s>(run: &Run, state: &'s JobState) -> &'s [Active] {
    let place = state.active.iter().position(|active| active.run == run.id);
    place.map_or(&[], |place| &state.active[place + 1..])
}

/// All other runs whose place a run may take: those of its job that have not ended, but for those that wait for a time of
/// their own.
pub(super) fn replaceable_runs(run: &Run, state: &JobState, job: &JobRecord) -> BTreeSet<RunId> {
    let active = state.active.iter().map(|active| (active.run, active.target));
    let queued = state.queue.iter().map(|queued| (queued.run, queued.target));
    let is_other = |(other, target): &(RunId, _)| *other != run.id && placement::can_overlap(job, *target, run.target);
    active.chain(queued).filter(is_other).map(|(other, _)| other).collect()
}
