//! Whether a run may start now, as far as its node, other runs of its job and its lock are concerned. Conditions are
//! evaluated last, when the run starts.

use std::collections::BTreeSet;

use super::draft::UnitDraft;
use super::placement;
use super::run_lifecycle::is_lock_taken;
use crate::ids::RunId;
use crate::job::{OverlapPolicy, QUEUE_LIMIT_DEFAULT};
use crate::policy::overlap::{Admission, AdmissionObstacles, admit, admit_first};
use crate::record::{ActiveRun, Blocker, JobRecord, JobState, Run};
use crate::run::Reason;

/// Whether a waiting run may start now. `is_new` says that it has not been queued yet. A new run that cannot start here
/// is only checked against other runs and its lock, so that it is skipped or replaces others as on any node; another
/// node decides when it starts.
pub(super) fn admission_of(
    draft: &UnitDraft<'_>,
    run: &Run,
    state: &JobState,
    job: &JobRecord,
    is_new: bool,
) -> Admission {
    let may_start = placement::may_start(draft.view, run, job);
    let is_for_another = is_new && !placement::is_for_this_node(draft.view, run);
    if !may_start && !is_new {
        return Admission::Wait;
    }
    let blocked_by = obstacles(draft, run, state, job);
    let is_queue = matches!(job.job.overlap, OverlapPolicy::Queue { .. });
    let admission = match is_new {
        true => admit(job.job.overlap, blocked_by),
        // Queued runs start in their order.
        false if is_queue && !is_first_in_queue(run, state, job) => Admission::Wait,
        false => admit_first(job.job.overlap, blocked_by),
    };
    if admission != Admission::Start {
        return admission;
    }
    if !may_start && !is_for_another {
        return Admission::Wait;
    }
    if state.active.len() >= JobState::ACTIVE_MAX && !state.is_active(run.id) {
        let has_room = !is_new || blocked_by.queued < QUEUE_LIMIT_DEFAULT;
        return if has_room { Admission::Wait } else { Admission::Skip(Reason::QueueFull) };
    }
    Admission::Start
}

/// What a run waits for that [`admission_of`] lets wait.
pub(super) fn blockers_of(draft: &UnitDraft<'_>, run: &Run, state: &JobState, job: &JobRecord) -> Vec<Blocker> {
    if !placement::may_start(draft.view, run, job) {
        return vec![Blocker::Node];
    }
    let blocked_by = obstacles(draft, run, state, job);
    let is_queue = matches!(job.job.overlap, OverlapPolicy::Queue { .. });
    let waits_for_runs = blocked_by.active > 0
        || is_queue && !is_first_in_queue(run, state, job)
        || state.active.len() >= JobState::ACTIVE_MAX;
    let lock = run.lock.clone().filter(|_| blocked_by.lock_is_held).map(Blocker::Lock);
    lock.into_iter().chain(waits_for_runs.then_some(Blocker::OtherRuns)).collect()
}

/// The runs and the lock that block a run.
fn obstacles(draft: &UnitDraft<'_>, run: &Run, state: &JobState, job: &JobRecord) -> AdmissionObstacles {
    let count = |runs: usize| u32::try_from(runs).unwrap_or(u32::MAX);
    let active = match job.job.overlap {
        OverlapPolicy::Allow => 0,
        _ => count(
            blocking_runs(draft, run, state, |active| placement::can_overlap(job, active.target, run.target)).len(),
        ),
    };
    let is_before = |queued: &&crate::record::QueuedRun| {
        queued.run != run.id && placement::can_overlap(job, queued.target, run.target)
    };
    let queued = count(state.queue.iter().filter(is_before).count());
    AdmissionObstacles { active, queued, lock_is_held: is_lock_taken(draft, run) }
}

/// Whether a run is the first in its queue. The queue waits for retries, so a retry is always first.
fn is_first_in_queue(run: &Run, state: &JobState, job: &JobRecord) -> bool {
    let head = state.queue.iter().find(|queued| placement::can_overlap(job, queued.target, run.target));
    state.is_active(run.id) || head.is_none_or(|head| head.run == run.id)
}

/// Active runs that a run has to wait for: all others for which `counts` is true. A retry counts as active while it
/// waits, so two retries could wait for each other; the one that became active first goes first.
pub(super) fn blocking_runs(
    draft: &UnitDraft<'_>,
    run: &Run,
    state: &JobState,
    counts: impl Fn(&ActiveRun) -> bool,
) -> Vec<ActiveRun> {
    let later = later_active(run, state);
    let earlier = &state.active[..state.active.len() - later.len()];
    let mut found: Vec<ActiveRun> =
        earlier.iter().filter(|active| active.run != run.id && counts(active)).copied().collect();
    for active in later.iter().filter(|active| counts(active)) {
        if draft.run(active.run).is_some_and(|other| other.state.has_program()) {
            found.push(*active);
        }
    }
    found
}

/// The runs that became active after this one; none if it is not active.
fn later_active<'s>(run: &Run, state: &'s JobState) -> &'s [ActiveRun] {
    let place = state.active.iter().position(|active| active.run == run.id);
    place.map_or(&[], |place| &state.active[place + 1..])
}

/// The runs that a new run replaces: those of its job that have not ended, except scheduled ones.
pub(super) fn replaceable_runs(run: &Run, state: &JobState, job: &JobRecord) -> BTreeSet<RunId> {
    let active = state.active.iter().map(|active| (active.run, active.target));
    let queued = state.queue.iter().map(|queued| (queued.run, queued.target));
    let is_other = |(other, target): &(RunId, _)| *other != run.id && placement::can_overlap(job, *target, run.target);
    active.chain(queued).filter(is_other).map(|(other, _)| other).collect()
}
