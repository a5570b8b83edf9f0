//! Seeds that once violated a guarantee. The name of a test says what must hold; its comment says what went wrong.

use sim::{SimSettings, simulate, world};

#[track_caller]
fn holds(seeds: &[u64]) {
    let world = world();
    for seed in seeds {
        let result = simulate(*seed, SimSettings::default(), &world);
        assert_eq!(result.finding, None, "seed {seed}");
    }
}

/// The reply to a claim was lost, and the program was launched without the fence of its lock.
#[test]
fn lost_claim_reply_keeps_the_fence() {
    holds(&[37, 52]);
}

/// Another node requested a stop, and the hint to the node of the run was lost.
#[test]
fn stop_works_without_its_hint() {
    holds(&[227, 1_148]);
}

/// A slow reply set the node's time too far ahead, and the node did not correct it when it learned the time.
#[test]
fn slow_time_reply_causes_no_early_claim() {
    holds(&[1_277, 1_320, 1_426]);
}

/// The reply to a resume was lost, and paused runs did not continue.
#[test]
fn lost_resume_reply_ends_the_pause() {
    holds(&[30_241]);
}

/// A suspended node claimed a time of a schedule that had become a schedule on node start.
#[test]
fn suspended_node_does_not_claim_for_a_replaced_schedule() {
    holds(&[375, 32_467, 33_937]);
}

/// The schedule of the due time had become one on node start, and no node was eligible.
#[test]
fn due_time_of_a_replaced_schedule_gets_an_outcome() {
    holds(&[56_455]);
}

/// The clock was set back, and the target node of the run was no longer eligible.
#[test]
fn occurrence_that_ran_is_not_skipped_after_a_clock_step() {
    holds(&[37_539, 38_598, 38_887]);
}

/// The schedule had been replaced by one with an earlier occurrence that jitter made due later.
#[test]
fn backlog_does_not_end_before_it_begins() {
    holds(&[92_148]);
}

/// The clock was set back to before the creation of the job, and occurrences before the creation were expected to have
/// an outcome.
#[test]
fn times_before_the_job_need_no_outcome() {
    holds(&[101_989]);
}

/// A node changed the schedule to an earlier time and died. The other node missed the hint and kept the later time in
/// its plan.
#[test]
fn schedule_moved_earlier_is_replanned_without_a_hint() {
    holds(&[205_396]);
}

/// The node requested the list of nodes before it was drained, and the reply arrived afterwards.
#[test]
fn stale_node_list_does_not_end_draining() {
    holds(&[302_882]);
}

/// A node was suspended while the store's clock was set back, and claimed by the time that it knew before.
#[test]
fn resumed_node_does_not_use_an_old_time() {
    holds(&[310_066]);
}

/// After the clock was set back, the runs of a schedule that counts from its previous run got the ids of deleted runs.
#[test]
fn schedule_that_counts_from_its_runs_repeats_no_id_after_a_clock_step() {
    holds(&[6_589]);
}

/// A schedule that counts from its previous run skipped the times that its former definition had claimed.
#[test]
fn changed_schedule_ignores_the_claims_of_its_former_times() {
    holds(&[6_509]);
}

/// The notification was lost, the clock was set back, and the waiting run was found only at its old due time.
#[test]
fn waiting_run_is_found_after_a_clock_step() {
    holds(&[5_994, 9_092]);
}

/// A batch that was decided while the node drained was committed after the end of the drain.
#[test]
fn run_that_was_put_off_in_a_drain_starts_at_its_end() {
    holds(&[6_445]);
}

/// Runs that the pause of the job held back were woken in place of the run that an operator had started.
#[test]
fn run_of_an_operator_does_not_wait_behind_paused_runs() {
    holds(&[2_016]);
}

/// A late notification about a waiting run replaced the check that the end of another run had planned.
#[test]
fn late_notification_does_not_postpone_a_woken_run() {
    holds(&[1_827]);
}

/// When a run no longer waited for a lock, every node woke the next run at once, instead of one after the other.
#[test]
fn nodes_wake_the_next_waiting_run_one_after_the_other() {
    holds(&[1_493]);
}

/// The simulated connection delivered a reply of the former server after the recovery had begun, which the ordered
/// connection of the Redis store does not.
#[test]
fn replies_of_the_former_server_come_before_the_recovery() {
    holds(&[1_625]);
}

/// The last action of a removed job's run was done shortly before the end, and the walk that deletes the run was still to
/// come.
#[test]
fn run_is_kept_until_the_walk_after_its_last_action() {
    holds(&[3_440]);
}

/// The reply to the end of a drain was lost, and the only node drained on.
#[test]
fn node_that_is_alone_learns_of_the_end_of_its_drain() {
    holds(&[3_504]);
}

/// A pause that had just ended by itself was not recorded as ended yet, and counted as if it had never been.
#[test]
fn pause_that_ends_by_itself_holds_nothing_back_from_its_end_on() {
    holds(&[3_952]);
}

/// A node noticed the step of the store's clock late, because the store was slow, and held back claims from then on.
#[test]
fn node_that_notices_a_clock_step_late_is_not_held_responsible() {
    holds(&[5_991]);
}

/// After the clock was set back, a span of skips began where one had begun that retention has deleted.
#[test]
fn span_of_skips_may_begin_where_a_deleted_one_began() {
    holds(&[8_346]);
}

/// After the clock was set back, a schedule that counts from its previous run came to the same second again, and the
/// second run was reported as another outcome of the first occurrence.
#[test]
fn schedule_that_counts_from_its_runs_may_repeat_a_second_after_a_clock_step() {
    holds(&[3_224, 4_813]);
}

/// A run failed in the unit that created it, so its retry was expected to be never late.
#[test]
fn retry_of_a_run_that_failed_at_once_is_late_like_that_run() {
    holds(&[632]);
}

/// An operator removed the pending triggers of a job that had no batching policy any more, and what was decided about
/// them was deleted.
#[test]
fn removed_triggers_of_a_job_without_a_policy_are_counted() {
    holds(&[868]);
}

/// The mark of a trigger has the same holder as the lock of its run, and another fence after the clock was set back.
#[test]
fn run_of_a_trigger_receives_the_fence_of_its_lock() {
    holds(&[4_954]);
}

/// A waiting run was noted as late in the batch that ended the run before it, and the note replaced the check that was
/// planned for that moment.
#[test]
fn run_that_is_noted_as_late_is_checked_for_its_start_as_well() {
    holds(&[8_150]);
}
