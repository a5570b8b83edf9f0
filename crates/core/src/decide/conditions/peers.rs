//! Peers: runs of a job with the same args that have started or wait. Scheduled runs do not count, except retries.

use std::sync::Arc;

use crate::args::Args;
use crate::decide::draft::UnitDraft;
use crate::decide::placement;
use crate::ids::{NodeId, RunId};
use crate::record::{JobRecord, JobState, Run};

/// All peers of a run with these args, on any node.
pub(super) fn of(draft: &UnitDraft<'_>, state: &JobState, args: &Args, but: RunId) -> Vec<Arc<Run>> {
    found(draft, ids(state, args, but, |_| true), args)
}

/// Peers of a run that came before it and overlap with it. Of two waiting runs only the later one sees the other, so
/// one of them remains.
pub(super) fn before(draft: &UnitDraft<'_>, state: &JobState, run: &Run, job: &JobRecord) -> Vec<Arc<Run>> {
    let place = state.queued().position(|queued| queued == run.id).unwrap_or(state.queue.len());
    let rivals = ids(state, &run.args, run.id, |target| placement::can_overlap(job, target, run.target));
    let mut peers = found(draft, rivals, &run.args);
    peers.retain(|peer| !state.queue[place..].iter().any(|queued| queued.run == peer.id));
    peers
}

fn found(draft: &UnitDraft<'_>, ids: Vec<RunId>, args: &Args) -> Vec<Arc<Run>> {
    ids.into_iter().filter_map(|id| draft.run(id)).filter(|run| run.args == *args).collect()
}

fn ids(state: &JobState, args: &Args, but: RunId, counts: impl Fn(Option<NodeId>) -> bool) -> Vec<RunId> {
    let digest = args.digest();
    let active = state.active.iter().filter(|active| active.args == digest && counts(active.target));
    let active = active.map(|active| active.run);
    // A retry that waits is in both.
    let queued = state.queue.iter().filter(|queued| !state.is_active(queued.run) && counts(queued.target));
    active.chain(queued.map(|queued| queued.run)).filter(|run| *run != but).collect()
}
