//! Delivers an action: begins an attempt on this node, or carries out an action that needs nothing from the outside. An
//! attempt belongs to its node for the time of a lease, so two nodes do not try at once; after that, or if the node was
//! restarted, it is tried again.

use std::sync::Arc;

use super::draft::UnitDraft;
use super::run;
use super::trigger::{self, NewTrigger};
use crate::command::DeliveryResult;
use crate::decision::{CommandReply, DecidedUnit, RecordChange};
use crate::ids::RunId;
use crate::policy::delivery;
use crate::record::{ActionId, ActionRecord, ActionStatus, Record, ResolvedAction, RunOwner};
use crate::view::{DecisionView, Halt};

/// Begins an attempt if the action is due, or its attempt was interrupted.
pub(super) fn decide(view: &DecisionView<'_>, id: ActionId) -> Result<DecidedUnit, Halt> {
    let Some(action) = view.action(id).filter(|action| is_claimable(view, action)) else {
        return UnitDraft::new(view).finish(CommandReply::Unchanged);
    };
    if let ResolvedAction::Run { job, args, inherited, .. } = &action.work {
        let created = action.created_run().expect("an action of this kind creates a run");
        let inherited = inherited.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        return create_run(view, &action, created, |view| match view.job(job) {
            Some(target) if target.job.batching_policy().is_some() => {
                let (id, message) = (&action.trigger_id(), None);
                let new = NewTrigger { job, args, inherited: &inherited, id, message, run: created };
                trigger::receive(view, &new)
            }
            // The pass that does not know the job yet is discarded.
            _ => run::create(view, job, args, &inherited, created),
        });
    }
    let mut begun = (*action).clone();
    begun.attempts += 1;
    let due = view.stamp.at.plus(delivery::lease(begun.work.kind()));
    begun.status = ActionStatus::Pending { due, owner: Some(view.stamp.owner) };
    put(view, begun)
}

/// Records the result of an attempt.
pub(super) fn report(
    view: &DecisionView<'_>,
    id: ActionId,
    attempt: u32,
    result: &DeliveryResult,
) -> Result<DecidedUnit, Halt> {
    let Some(action) = view.action(id).filter(|action| action.is_pending()) else {
        return UnitDraft::new(view).finish(CommandReply::Unchanged);
    };
    let mut after = (*action).clone();
    match result {
        // Delivered is delivered, even if the lease has ended and another node tries it again.
        DeliveryResult::Delivered => after.status = ActionStatus::Done { at: view.stamp.at },
        DeliveryResult::Failed(error) if action.owner() == Some(view.stamp.owner) && action.attempts == attempt => {
            record_failure(view, &mut after, error);
        }
        DeliveryResult::Failed(_) => return UnitDraft::new(view).finish(CommandReply::Unchanged),
    }
    put(view, after)
}

/// Whether this node may begin an attempt now.
fn is_claimable(view: &DecisionView<'_>, action: &ActionRecord) -> bool {
    let ActionStatus::Pending { due, owner } = action.status else { return false };
    let RunOwner { node, incarnation } = view.stamp.owner;
    let is_earlier_process = owner.is_some_and(|owner| owner.node == node && owner.incarnation != incarnation);
    let is_own_turn = matches!(action.work, ResolvedAction::Run { .. }) && owner == Some(view.stamp.owner);
    view.world.is_node && (due <= view.stamp.at || is_earlier_process || is_own_turn)
}

/// Creates the run of an action, or its trigger, and ends the action in one unit. If the run cannot be created, the attempt has failed.
fn create_run(
    view: &DecisionView<'_>,
    action: &ActionRecord,
    created: RunId,
    create: impl FnOnce(&DecisionView<'_>) -> Result<DecidedUnit, Halt>,
) -> Result<DecidedUnit, Halt> {
    let mut after = action.clone();
    after.attempts += 1;
    match create(view) {
        Ok(mut done) => {
            match (&done.answer, &mut after.work) {
                (CommandReply::Trigger { .. }, ResolvedAction::Run { trigger, .. }) => {
                    *trigger = Some(action.trigger_id());
                }
                (answer, _) => debug_assert!(matches!(answer, CommandReply::Run { id, .. } if *id == created)),
            }
            after.status = ActionStatus::Done { at: view.stamp.at };
            done.changes.push(RecordChange::Put(Record::Action(Arc::new(after))));
            Ok(done)
        }
        Err(Halt::Reject(rejection)) => {
            // The rejection may only be due to records that are not loaded yet.
            view.require_loaded()?;
            record_failure(view, &mut after, &rejection.to_string());
            put(view, after)
        }
        Err(halt) => Err(halt),
    }
}

/// Plans the next attempt, or gives the action up.
fn record_failure(view: &DecisionView<'_>, action: &mut ActionRecord, error: &str) {
    let now = view.stamp.at;
    action.failures += 1;
    action.set_error(error);
    action.status = match delivery::next_attempt(action.id, action.created, action.failures, now) {
        Some(due) => ActionStatus::Pending { due, owner: None },
        None => ActionStatus::Failed { at: now },
    };
}

fn put(view: &DecisionView<'_>, action: ActionRecord) -> Result<DecidedUnit, Halt> {
    let mut draft = UnitDraft::new(view);
    draft.put(Record::Action(Arc::new(action)));
    draft.finish(CommandReply::Done)
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::Span;

    use crate::decide::testing::{DecisionBench, play};
    use crate::policy::delivery::GIVE_UP_AFTER;
    use crate::record::{ActionRecord, ActionStatus, Record, ResolvedAction};
    use crate::run::State;
    use crate::task::JsonText;

    fn actions(bench: &DecisionBench) -> Vec<ActionRecord> {
        let actions = bench.records.values().filter_map(|stored| match &stored.record {
            Record::Action(action) => Some((**action).clone()),
            _ => None,
        });
        actions.collect()
    }

    #[test]
    fn run_action_creates_exactly_one_run_in_the_commit_that_ends_it() {
        let bench = play(
            "00:00 put next overlap allow
                job r1
            00:00 put j overlap allow; on success run next
                job r1
            00:01 run j
                j#1 00:01 starting, → #1
            00:02 ended j#1 yes
                j#1 00:01 success, action 0 success run next at node 1.1
            00:02 deliver j#1.0
                next#1 00:02 starting, action 0 success run next tried 1 done, → #1
            00:02 deliver j#1.0
                unchanged
            00:03 delivered j#1.0 1
                unchanged",
        );
        let created = actions(&bench)[0].created_run().expect("it creates a run");
        let run = bench.run(Some(&crate::decide::testing::job_id("next")), 1);
        assert_eq!((run.id, run.creator()), (created, Some(&crate::record::Actor::Action)));
        assert_eq!(bench.runs().count(), 2);
    }

    #[test]
    fn run_action_passes_its_args_and_inherits_the_others() {
        let bench = play(
            "00:00 put next param x; param y; overlap allow
                job r1
            00:00 put j param x; param z; overlap allow; on finished run next y={{state}}
                job r1
            00:01 run j x=1 z=2
                j#1 00:01 starting, → #1
            00:02 ended j#1 no
                j#1 00:01 failure: exit code 1, action 0 finished run next at node 1.1
            00:02 deliver j#1.0
                next#1 00:02 starting, action 0 finished run next tried 1 done, → #1",
        );
        let run = bench.run(Some(&crate::decide::testing::job_id("next")), 1);
        assert_eq!(run.args.to_string(), "x=1 y=failure");
    }

    #[test]
    fn run_action_without_its_job_is_tried_again_until_the_job_exists() {
        play(
            "00:00 put j overlap allow; on success run next
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 ended #1 yes
                #1 00:01 success, action 0 success run next at node 1.1
            00:02 deliver #1.0
                action 0 success run next tried 1 failed 1 due 00:02:05.418 (there is no job `next`)
            00:02:01 deliver #1.0
                unchanged
            00:02:06 put next overlap allow
                job r1
            00:02:06 deliver j#1.0
                next#1 00:02:06 starting, action 0 success run next tried 2 failed 1 done (there is no job `next`), → #1",
        );
    }

    #[test]
    fn paused_job_records_a_skipped_run_for_an_action() {
        play(
            "00:00 put next overlap allow
                job r1
            00:00 pause next
                job paused
            00:00 put j overlap allow; on success run next
                job r1
            00:01 run j
                j#1 00:01 starting, → #1
            00:02 ended j#1 yes
                j#1 00:01 success, action 0 success run next at node 1.1
            00:02 deliver j#1.0
                next#1 00:02 skipped: paused, action 0 success run next tried 1 done, → #1",
        );
    }

    /// The end of an attempt that is retried is not the end of the run, and a mark is an event.
    #[test]
    fn every_transition_has_its_actions_and_a_retried_end_has_none() {
        let bench = play(
            "00:00 put j overlap allow; retry 2; on waiting run a; on running run b; on failure run c; on finished run d
                job r1
            00:01 run j
                #1 00:01 starting, action 0 waiting run a at node 1.1, → #1
            00:01 launched #1
                #1 00:01 running, action 1 running run b at node 1.1
            00:02 ended #1 no
                #1 00:01 failure: exit code 1, #2 00:01 attempt 2 scheduled
            00:02:10 wake #2
                #2 00:01 attempt 2 starting, action 0 waiting run a at node 1.1
            00:03 ended #2 no
                #2 00:01 attempt 2 failure: exit code 1, action 1 failure run c at node 1.1, action 2 finished run d at node 1.1
            00:04 mark #2 success
                #2 00:01 attempt 2 success: by operator, action 3 finished run d at node 1.1
            00:05 mark #2 failure
                #2 00:01 attempt 2 failure: by operator, action 4 failure run c at node 1.1, action 5 finished run d at node 1.1",
        );
        assert_eq!([bench.run(None, 1).actions, bench.run(None, 2).actions], [2, 6]);
        assert!(bench.runs().all(|run| run.state == State::Failure));
    }

    #[test]
    fn run_with_an_undone_action_is_not_pruned() {
        play(
            "00:00 put j overlap allow; kept 0; on success run next
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 ended #1 yes
                #1 00:01 success, action 0 success run next at node 1.1
            00:03 prune j #1
                unchanged
            00:03 put next overlap allow
                job r1
            00:04 deliver j#1.0
                next#1 00:04 starting, action 0 success run next tried 1 done, → #1
            00:05 prune j j#1
                #1 gone, action 0 gone",
        );
    }

    #[test]
    fn action_is_given_up_after_a_day_and_no_longer_keeps_its_run() {
        let mut bench = play(
            "00:00 put j overlap allow; kept 0; on success run next
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 ended #1 yes
                #1 00:01 success, action 0 success run next at node 1.1",
        );
        let created = bench.now;
        while actions(&bench)[0].is_pending() {
            if let Some(due) = actions(&bench)[0].due().filter(|_| actions(&bench)[0].owner().is_none()) {
                bench.now = due;
            }
            bench.happens("deliver #1.0");
            assert!(bench.now <= created.plus(GIVE_UP_AFTER));
        }
        let action = &actions(&bench)[0];
        assert!(matches!(action.status, ActionStatus::Failed { .. }) && action.attempts > 20, "{action:?}");
        assert!(bench.now > created.plus(GIVE_UP_AFTER.minus(Span::from_secs(5_000))));
        assert_eq!(bench.happens("prune j #1"), ["#1 gone, action 0 gone"]);
    }

    /// The rules of attempts that need the outside, with a kind that any version has: the id, the lease and who reports.
    #[test]
    fn attempt_of_a_lost_process_is_repeated_at_once_and_of_a_lost_node_after_its_lease() {
        let script = "00:00 put j overlap allow; on success KIND
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 ended #1 yes
                #1 00:01 success, action 0 success TARGET tried 1 at node 1.1
            00:02 deliver #1.0
                unchanged
            00:02:01 undelivered #1.0 1 status 500
                action 0 success TARGET tried 1 failed 1 due 00:02:06.418 (status 500)
            00:02:07 deliver #1.0
                action 0 success TARGET tried 2 failed 1 at node 1.1 (status 500)
            00:02:08 node 1.2
            00:02:08 undelivered #1.0 2 of an earlier process
                unchanged
            00:02:08 deliver #1.0
                action 0 success TARGET tried 3 failed 1 at node 1.2 (status 500)
            00:02:09 node 2.7
            00:02:09 deliver #1.0
                unchanged
            00:02:49 deliver #1.0
                action 0 success TARGET tried 4 failed 1 at node 2.7 (status 500)
            00:02:50 node 1.2
            00:02:50 undelivered #1.0 3 too late
                unchanged
            00:02:51 delivered #1.0 3
                action 0 success TARGET tried 4 failed 1 done (status 500)
            00:02:52 undelivered #1.0 4 too late
                unchanged";
        play(&script.replace("KIND", "webhook https://example.org/x").replace("TARGET", "webhook https://example.org"));
    }

    #[test]
    fn action_whose_templates_fail_is_visible_as_failed() {
        let bench = play(
            "00:00 put j overlap allow; on success run {{reason}}; on finished publish {{reason}}
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 ended #1 yes
                #1 00:01 success, action 0 success run failed (`run.job`: a job's id cannot be empty (write a name such as reports/prices)), action 1 finished publish failed (`publish.channel`: a channel cannot be empty (write a path such as /shop/orders))",
        );
        assert!(actions(&bench).iter().all(|action| action.attempts == 0));
    }

    #[test]
    fn message_is_delivered_like_a_webhook_and_needs_a_store_with_tasks() {
        let mut bench = play(
            "00:00 put j overlap allow; on finished publish /jobs/{{job}}
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 ended #1 yes
                #1 00:01 success, action 0 finished publish /jobs/j tried 1 at node 1.1
            00:02:01 node 1.2
            00:02:01 deliver #1.0
                action 0 finished publish /jobs/j tried 2 at node 1.2
            00:02:02 delivered #1.0 2
                action 0 finished publish /jobs/j tried 2 done",
        );
        let ResolvedAction::Publish { message, .. } = &actions(&bench)[0].work else { panic!("it is not a message") };
        let run = bench.run(None, 1).id;
        let expected = format!(
            r#"{{"at":"2026-01-05T00:02:00Z","job":"j","number":1,"reason":"","run":"{run}","state":"success"}}"#
        );
        assert!(message.is_same_value(&JsonText::parse(&expected).expect("JSON")), "{message}");
        bench.world.has_tasks = false;
        assert_eq!(
            bench.happens("put k overlap allow; on finished publish /x"),
            ["! `publish` actions of `k` need tasks, and this store does not keep tasks"]
        );
    }

    /// A node that was restarted before it could decide has the first turn again.
    #[test]
    fn run_action_of_an_earlier_process_is_decided_after_the_restart() {
        play(
            "00:00 put next overlap allow
                job r1
            00:00 put j overlap allow; on success run next
                job r1
            00:01 run j
                j#1 00:01 starting, → #1
            00:02 ended j#1 yes
                j#1 00:01 success, action 0 success run next at node 1.1
            00:02:01 node 2.1
            00:02:01 deliver j#1.0
                unchanged
            00:02:02 node 1.2
            00:02:02 deliver j#1.0
                next#1 00:02:02 starting, action 0 success run next tried 1 done, → #1",
        );
    }
}
