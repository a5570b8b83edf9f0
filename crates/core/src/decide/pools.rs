//! Membership in pools. A run joins the pools that its job names in the commit that starts it, and leaves them in the
//! commit that ends it, so that a limit is never exceeded. The pools are stored with the run, because the job may change.

use super::draft::UnitDraft;
use crate::ids::RunId;
use crate::job::Job;
use crate::record::{Pool, PoolName, RecordKey, Run};

/// Lets a run join all pools that its job names, whatever its conditions say: a run that an operator has started ignores
/// the limits and counts for them.
pub(super) fn join(draft: &mut UnitDraft<'_>, run: &mut Run, job: &Job) {
    run.pools = job.pools();
    for name in &run.pools {
        let mut pool = draft.pool(name);
        pool.join(run);
        draft.put_pool(pool);
    }
}

/// Lets a run that has ended leave its pools. The run keeps their names for its history.
pub(super) fn leave(draft: &mut UnitDraft<'_>, run: RunId, names: &[PoolName]) {
    for name in names {
        let mut pool = draft.pool(name);
        if pool.contains(run) {
            pool.leave(run);
            draft.put_pool(pool);
        }
    }
}

/// The records that [`leave`] reads.
pub(super) fn keys(run: &Run) -> impl Iterator<Item = RecordKey> {
    run.pools.iter().cloned().map(RecordKey::Pool)
}

/// The first pool of a job that has no room for any run, whatever its size.
pub(super) fn full(draft: &UnitDraft<'_>, job: &Job) -> Option<PoolName> {
    job.pools().into_iter().find(|name| draft.pool(name).active.len() >= Pool::ACTIVE_MAX)
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    #[test]
    fn pool_limits_the_runs_of_several_jobs() {
        play(
            "00:00 put a overlap allow; needs max_running 2 pool=db
                job r1
            00:00 put b overlap allow; needs max_running 2 pool=db
                job r1
            00:00 put c overlap allow
                job r1
            00:00:10 run a
                a#1 00:00:10 starting, pool db: a#1, → #1
            00:00:20 run b
                b#1 00:00:20 starting, pool db: a#1 b#1, → #1
            00:00:30 run c
                c#1 00:00:30 starting, → #1
            00:02 run b
                b#2 00:02 waiting, → #2
            00:03 launched a#1
                a#1 00:00:10 running
            00:03 stop a#1
                a#1 00:00:10 stopping (stopped)
            00:03 wake b#2
                b#2 00:02 waiting
            00:04 ended a#1 no
                a#1 00:00:10 failure: stopped, pool db: b#1
            00:04 wake b#2
                b#2 00:02 starting, pool db: b#1 b#2
            00:05 ended b#1 yes
                b#1 00:00:20 success, pool db: b#2
            00:05 ended b#2 yes
                b#2 00:02 success, pool db gone",
        );
    }

    /// The retry takes a place again when it starts.
    #[test]
    fn run_that_waits_for_its_retry_leaves_its_place() {
        play(
            "00:00 put a overlap allow; needs max_running 1 pool=db; retry 2
                job r1
            00:01 run a
                #1 00:01 starting, pool db: #1, → #1
            00:02 ended #1 no
                #1 00:01 failure: exit code 1, #2 00:01 attempt 2 scheduled, pool db gone
            00:02 start #2
                #2 00:01 attempt 2 starting, pool db: #2",
        );
    }

    /// A start by an operator ignores the limit, and the run counts.
    #[test]
    fn run_started_by_an_operator_counts() {
        play(
            "00:00 put a overlap allow; needs max_running 1 pool=db
                job r1
            00:01 run a
                #1 00:01 starting, pool db: #1, → #1
            00:02 run a
                #2 00:02 waiting, → #2
            00:03 start #2
                #2 00:02 starting, pool db: #1 #2
            00:04 run a
                #3 00:04 waiting, → #3
            00:05 ended #1 yes
                #1 00:01 success, pool db: #2
            00:05 wake #3
                #3 00:04 waiting
            00:06 ended #2 yes
                #2 00:02 success, pool db gone
            00:06 wake #3
                #3 00:04 starting, pool db: #3",
        );
    }

    /// The pools of a run do not change with its job.
    #[test]
    fn run_leaves_the_pools_that_it_joined() {
        play(
            "00:00 put a overlap allow; needs max_running 1 pool=db; needs max_running 1 pool=net
                job r1
            00:01 run a
                #1 00:01 starting, pool db: #1, pool net: #1, → #1
            00:02 put a overlap allow
                job r2, (wake #1 00:02)
            00:02 run a
                #2 00:02 starting, → #2
            00:03 ended #1 yes
                #1 00:01 success, pool db gone, pool net gone",
        );
    }

    #[test]
    fn limit_of_a_pool_can_apply_to_each_args() {
        play(
            "00:00 put a param x; overlap allow; needs max_running 1 same_args pool=db
                job r1
            00:01 run a x=1
                #1 00:01 starting, pool db: #1, → #1
            00:02 run a x=2
                #2 00:02 starting, pool db: #1 #2, → #2
            00:03 run a x=1
                #3 00:03 waiting, → #3",
        );
    }
}
