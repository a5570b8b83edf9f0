//! Repairs a pool that names runs which do not hold a place in it: runs that are gone or have ended. Units never leave
//! such entries, but a store that loses some of its last writes does, and so does a run whose record cannot be read and
//! that an operator ends. Without a repair, the place would stay taken.

use super::draft::UnitDraft;
use crate::decision::{CommandReply, DecidedUnit};
use crate::record::PoolName;
use crate::view::{DecisionView, Halt};

/// Removes entries without such a run. Writes nothing if there are none.
pub(super) fn decide(view: &DecisionView<'_>, name: &PoolName) -> Result<DecidedUnit, Halt> {
    let pool = view.pool(name);
    let mut repaired = (*pool).clone();
    let holds_place = |run: &crate::record::Run| run.state.has_program() && run.pools.contains(name);
    repaired.active.retain(|active| view.run(active.run).is_some_and(|run| holds_place(&run)));
    view.require_loaded()?;
    let mut draft = UnitDraft::new(view);
    if repaired == *pool {
        return draft.finish(CommandReply::Unchanged);
    }
    draft.put_pool(repaired);
    draft.finish(CommandReply::Done)
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    #[test]
    fn entry_without_its_run_is_removed() {
        play(
            "00:00 put a overlap allow; needs max_running 2 pool=db
                job r1
            00:01 run a
                #1 00:01 starting, pool db: #1, → #1
            00:02 run a
                #2 00:02 starting, pool db: #1 #2, → #2
            00:03 run a
                #3 00:03 waiting, → #3
            00:03 repair pool db
                unchanged
            00:04 lose #1
            00:04 repair pool db
                pool db: #2
            00:04 wake #3
                #3 00:03 starting, pool db: #2 #3
            00:05 lose #2
            00:05 lose #3
            00:05 repair pool db
                pool db gone",
        );
    }
}
