//! Seeds that once broke a promise, each under the name of what was wrong.

use sim::{SimSettings, simulate, world};

#[track_caller]
fn holds(seeds: &[u64]) {
    let world = world();
    for seed in seeds {
        let showing = simulate(*seed, SimSettings::default(), &world);
        assert_eq!(showing.finding, None, "seed {seed}");
    }
}

/// The answer to its claim got lost, so that nobody had told the fence of its lock.
#[test]
fn a_program_started_without_its_fence() {
    holds(&[37, 52]);
}

/// Another node had told it to end, and the hint got lost.
#[test]
fn a_stop_that_its_node_did_not_hear_of() {
    holds(&[227, 1_148]);
}

/// A slow answer had put the time too far ahead, and it did not go back when the time was known.
#[test]
fn an_occurrence_was_claimed_early() {
    holds(&[1_277, 1_320, 1_426]);
}

/// Nobody heard that the pause had ended, and what rested went on resting.
#[test]
fn a_pause_whose_end_was_not_answered() {
    holds(&[30_241]);
}

/// A node that had been paused claimed a time of a schedule that was one for starts of nodes by then.
#[test]
fn a_time_was_taken_for_a_start() {
    holds(&[375, 32_467, 33_937]);
}

/// Its schedule counts starts of nodes by now, and no node may run it.
#[test]
fn a_time_that_was_due_waited_for_ever() {
    holds(&[56_455]);
}

/// The clock had gone back, and the node that the run was for could not run it any more.
#[test]
fn an_occurrence_on_each_node_was_skipped_after_it_had_run() {
    holds(&[37_539, 38_598, 38_887]);
}

/// Its schedule was another one by then, with an earlier occurrence that its jitter made due later.
#[test]
fn a_backlog_ended_before_it_began() {
    holds(&[92_148]);
}

/// The clock had gone back behind the time at which its job was put, and what lay before it was asked for.
#[test]
fn a_time_before_the_job_had_no_outcome() {
    holds(&[101_989]);
}

/// Its schedule was changed to an earlier time by a node that died then, and the other did not hear of it: it was in the
/// plan of that one, for the later time.
#[test]
fn an_earlier_time_was_taken_for_planned() {
    holds(&[205_396]);
}

/// It had asked who is there before it was told to drain, and the answer came afterwards.
#[test]
fn an_old_answer_ended_draining() {
    holds(&[302_882]);
}

/// A node stood still while the store's clock was set back, and claimed by the time that it knew before.
#[test]
fn a_node_that_stood_still_went_by_an_old_time() {
    holds(&[310_066]);
}
