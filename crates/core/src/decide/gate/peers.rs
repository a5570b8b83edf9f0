//! Runs of a job with the same args that have not ended: those that have started and those that wait. Runs that wait
//! for their own time are not among them, but for retries.

use std::sync::Arc;

use crate::args::Args;
use crate::decide::draft::Draft;
use crate::ids::RunId;
use crate::record::{JobState, Key, Run};
use crate::view::Halt;

/// The runs that may be peers. Those that wait have to be looked at to know their args.
pub(super) fn keys(state: &JobState, args: &Args, but: RunId) -> Vec<Key> {
    ids(state, args, but).into_iter().map(Key::Run).collect()
}

/// All peers.
pub(super) fn of(draft: &Draft<'_>, state: &JobState, args: &Args, but: RunId) -> Result<Vec<Arc<Run>>, Halt> {
    let ids = ids(state, args, but);
    draft.view.need(ids.iter().map(|id| Key::Run(*id)))?;
    let mut found = Vec::new();
    for id in ids {
        found.extend(draft.run(id)?.filter(|run| run.args == *args));
    }
    Ok(found)
}

/// Peers of a run that were there before it. Of two that wait, only the later one sees the other, so that one of them
/// is left.
pub(super) fn before(draft: &Draft<'_>, state: &JobState, run: &Run) -> Result<Vec<Arc<Run>>, Halt> {
    let place = state.queue.iter().position(|queued| *queued == run.id).unwrap_or(state.queue.len());
    let mut peers = of(draft, state, &run.args, run.id)?;
    peers.retain(|peer| !state.queue[place..].contains(&peer.id));
    Ok(peers)
}

fn ids(state: &JobState, args: &Args, but: RunId) -> Vec<RunId> {
    let digest = args.digest();
    let active = state.active.iter().filter(|active| active.args == digest).map(|active| active.run);
    // A retry that waits is in both.
    let queued = state.queue.iter().copied().filter(|run| !state.is_active(*run));
    active.chain(queued).filter(|run| *run != but).collect()
}
