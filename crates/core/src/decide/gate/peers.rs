//! Runs of a job with the same args that have not ended: those that have started and those that wait. Runs that wait
//! for their own time are not among them, but for retries.

use std::sync::Arc;

use crate::args::Args;
use crate::decide::draft::Draft;
use crate::decide::place;
use crate::ids::{NodeId, RunId};
use crate::record::{JobRecord, JobState, Key, Run};
use crate::view::Halt;

/// The runs that may be peers, on whatever node. Those that wait have to be looked at to know their args.
pub(super) fn keys(state: &JobState, args: &Args, but: RunId) -> Vec<Key> {
    ids(state, args, but, |_| true).into_iter().map(Key::Run).collect()
}

/// The runs that may be peers and in the way of a run.
pub(super) fn keys_of_rivals(state: &JobState, run: &Run, job: &JobRecord) -> Vec<Key> {
    let rivals = ids(state, &run.args, run.id, |target| place::is_same(job, target, run.target));
    rivals.into_iter().map(Key::Run).collect()
}

/// All peers.
pub(super) fn of(draft: &Draft<'_>, state: &JobState, args: &Args, but: RunId) -> Result<Vec<Arc<Run>>, Halt> {
    found(draft, ids(state, args, but, |_| true), args)
}

/// Peers of a run that were there before it and are in its way. Of two that wait, only the later one sees the other, so
/// that one of them is left.
pub(super) fn before(draft: &Draft<'_>, state: &JobState, run: &Run, job: &JobRecord) -> Result<Vec<Arc<Run>>, Halt> {
    let place = state.queued().position(|queued| queued == run.id).unwrap_or(state.queue.len());
    let rivals = ids(state, &run.args, run.id, |target| place::is_same(job, target, run.target));
    let mut peers = found(draft, rivals, &run.args)?;
    peers.retain(|peer| !state.queue[place..].iter().any(|queued| queued.run == peer.id));
    Ok(peers)
}

fn found(draft: &Draft<'_>, ids: Vec<RunId>, args: &Args) -> Result<Vec<Arc<Run>>, Halt> {
    draft.view.need(ids.iter().map(|id| Key::Run(*id)))?;
    let mut found = Vec::new();
    for id in ids {
        found.extend(draft.run(id)?.filter(|run| run.args == *args));
    }
    Ok(found)
}

fn ids(state: &JobState, args: &Args, but: RunId, counts: impl Fn(Option<NodeId>) -> bool) -> Vec<RunId> {
    let digest = args.digest();
    let active = state.active.iter().filter(|active| active.args == digest && counts(active.target));
    let active = active.map(|active| active.run);
    // A retry that waits is in both.
    let queued = state.queue.iter().filter(|queued| !state.is_active(queued.run) && counts(queued.target));
    active.chain(queued.map(|queued| queued.run)).filter(|run| *run != but).collect()
}
