//! Triggers and batches, as scripts: ids, policies, pauses, locks, and changes of the job.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::command::{Command, Precondition};
use crate::decide::testing::{DecisionBench, job_id, play};
use crate::decision::Rejection;
use crate::ids::{JobUid, RunId};
use crate::job::{Job, Param, Program, Trigger};
use crate::record::{
    ActionStatus, Actor, JobSource, JobState, Record, RecordKey, Run, TriggerId, TriggerMessage, TriggerSet,
};
use crate::task::{Channel, JsonText};
use crate::template::Template;

fn set(bench: &DecisionBench) -> TriggerSet {
    match &bench.records[&RecordKey::Triggers(job_id("j"))].record {
        Record::Triggers(set) => (**set).clone(),
        other => panic!("{other:?}"),
    }
}

fn ids(run: &Run) -> String {
    run.triggers.iter().map(|trigger| trigger.id.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn trigger_without_a_policy_creates_one_run_for_its_id() {
    let mut bench = play(
        "00:00 put j overlap allow; param x; kept 0
            job r1
        00:01 trigger j a x=1
            #1 00:01 starting, → run #1
        00:02 trigger j a x=2
            → duplicate #1
        00:02 trigger j b
            ! the param `x` needs a value
        00:02 trigger k b
            ! there is no job `k`
        00:03 trigger j b x=2
            #2 00:03 starting, → run #2
        00:04 trigger j b x=2
            → run #2",
    );
    assert_eq!((ids(&bench.run(None, 1)), ids(&bench.run(None, 2))), ("a".to_owned(), "b".to_owned()));
    // The run is no longer kept, and the id is still known.
    bench.happens("ended #1 yes");
    bench.happens("prune j #1");
    assert_eq!(bench.happens("trigger j a x=2"), ["→ duplicate"]);
}

#[test]
fn greedy_batch_takes_all_triggers_that_arrived_meanwhile() {
    let bench = play(
        "00:00 put j batching greedy
            job r1
        00:01 trigger j a
            #1 00:01 starting, pending nothing (created run #1 for 1 trigger), → run #1
        00:02 trigger j b
            pending b until 00:03 (wait: 1 run has not ended, at most 1 at the same time), → pending
        00:02 trigger j b
            → pending
        00:03 trigger j c
            pending b c until 00:04 (wait: 1 run has not ended, at most 1 at the same time ×2), → pending
        00:03 batch j
            (batch 00:04), unchanged
        00:04 ended #1 yes
            #1 00:01 success
        00:04 batch j
            #2 00:04 starting, pending nothing (created run #2 for 2 triggers)
        00:04 batch j
            (batch never), unchanged",
    );
    let run = bench.run(None, 2);
    assert_eq!((ids(&run), run.creator()), ("b c".to_owned(), Some(&Actor::Operator("anna".to_owned()))));
    let counts = set(&bench).counts;
    assert_eq!((counts.received, counts.consumed), (3, 3));
}

#[test]
fn several_runs_take_batches_of_limited_size() {
    let bench = play(
        "00:00 put j overlap allow; batching greedy 2 2
            job r1
        00:01 emit j a
            #1 00:01 starting, pending nothing (created run #1 for 1 trigger), → run #1
        00:01 emit j b
            #2 00:01 starting, pending nothing (created run #2 for 1 trigger), → run #2
        00:01 emit j c
            pending c until 00:02 (wait: 2 runs have not ended, at most 2 at the same time), → pending
        00:01 emit j d
            pending c d until 00:02 (wait: 2 runs have not ended, at most 2 at the same time ×2), → pending
        00:01 emit j e
            pending c d e until 00:02 (wait: 2 runs have not ended, at most 2 at the same time ×3), → pending
        00:02 ended #1 yes
            #1 00:01 success
        00:02 ended #2 yes
            #2 00:01 success
        00:02 batch j
            #3 00:02 starting, #4 00:02 starting, pending nothing (created run #4 for 1 trigger)",
    );
    assert_eq!((ids(&bench.run(None, 3)), ids(&bench.run(None, 4))), ("c d".to_owned(), "e".to_owned()));
}

/// A run waits for its args, so triggers with other args would be lost in it.
#[test]
fn triggers_with_other_args_wait_for_another_run() {
    let bench = play(
        "00:00 put j param x; batching greedy
            job r1
        00:01 trigger j a x=1
            #1 00:01 starting, pending nothing (created run #1 for 1 trigger), → run #1
        00:01 trigger j b x=2
            pending b until 00:02 (wait: 1 run has not ended, at most 1 at the same time), → pending
        00:01 trigger j c x=1
            pending b c until 00:02 (wait: 1 run has not ended, at most 1 at the same time ×2), → pending
        00:01 trigger j d x=2
            pending b c d until 00:02 (wait: 1 run has not ended, at most 1 at the same time ×3), → pending
        00:02 ended #1 yes
            #1 00:01 success
        00:02 batch j
            #2 00:02 starting, pending c until 00:03 (wait: 1 run has not ended, at most 1 at the same time)
        00:03 ended #2 yes
            #2 00:02 success
        00:03 batch j
            #3 00:03 starting, pending nothing (created run #3 for 1 trigger)",
    );
    let args = |number| (ids(&bench.run(None, number)), bench.run(None, number).args.to_string());
    assert_eq!((args(2), args(3)), (("b d".into(), "x=2".into()), ("c".into(), "x=1".into())));
}

#[test]
fn logarithmic_batch_grows_with_the_number_of_pending_triggers() {
    let mut bench = play(
        "00:00 put j batching log 2
            job r1
        00:01 run j
            #1 00:01 starting, → #1",
    );
    (0..8).for_each(|number| drop(bench.happens(&format!("trigger j t{number}"))));
    bench.happens("ended #1 yes");
    bench.happens("batch j");
    assert_eq!(ids(&bench.run(None, 2)), "t0 t1 t2");
    assert_eq!(set(&bench).pending.len(), 5);
}

#[test]
fn newest_trigger_goes_first_and_old_ones_are_dropped_in_time() {
    let bench = play(
        "00:00 put j batching newest 30s
            job r1
        00:01 trigger j a
            #1 00:01 starting, pending nothing (created run #1 for 1 trigger), → run #1
        00:01 trigger j b
            pending b until 00:01:30 (wait: 1 run has not ended, at most 1 at the same time), → pending
        00:01:10 trigger j c
            pending b c until 00:01:30 (wait: 1 run has not ended, at most 1 at the same time ×2), → pending
        00:01:20 trigger j d
            pending b c d until 00:01:30 (wait: 1 run has not ended, at most 1 at the same time ×3), → pending
        00:01:30 batch j
            pending c d until 00:01:40 (wait: 1 run has not ended, at most 1 at the same time)
        00:01:35 ended #1 yes
            #1 00:01 success
        00:01:35 batch j
            #2 00:01:35 starting, pending c until 00:01:40 (wait: 1 run has not ended, at most 1 at the same time)
        00:01:40 batch j
            pending nothing (dropped 1 trigger that had become too old)",
    );
    assert_eq!(ids(&bench.run(None, 2)), "d");
    let counts = set(&bench).counts;
    assert_eq!((counts.received, counts.consumed, counts.expired), (4, 2, 2));
    let decisions: Vec<String> = set(&bench).decisions.iter().map(|one| one.outcome.to_string()).collect();
    assert_eq!(decisions.len(), 7, "{decisions:?}");
}

/// What a person requests passes a pause, and what an action emits waits for its end.
#[test]
fn pause_holds_back_triggers_of_actions_only() {
    let bench = play(
        "00:00 put j batching greedy
            job r1
        00:01 pause j
            job paused
        00:01 emit j a
            pending a until 00:02 (wait: paused), → pending
        00:02 trigger j b
            #1 00:02 starting, pending a until 00:03 (wait: paused), → run #1
        00:03 ended #1 yes
            #1 00:02 success
        00:03 batch j
            pending a until 00:04 (wait: paused)
        00:03:30 batch j
            (batch 00:04), unchanged
        00:03:40 resume j
            job resumed
        00:03:40 batch j
            #2 00:03:40 starting, pending nothing (created run #2 for 1 trigger)
        00:04 ended #2 yes
            #2 00:03:40 success
        00:04 pause all
            everything paused
        00:05 emit j c
            pending c until 00:06 (wait: paused), → pending
        00:05 resume all
            everything resumed
        00:05 batch j
            #3 00:05 starting, pending nothing (created run #3 for 1 trigger)",
    );
    assert_eq!((ids(&bench.run(None, 1)), ids(&bench.run(None, 2))), ("b".to_owned(), "a".to_owned()));
    assert_eq!(bench.run(None, 2).creator(), Some(&Actor::Action));
}

/// A run that is skipped would take its triggers with it.
#[test]
fn run_of_triggers_waits_for_its_lock_instead_of_being_skipped() {
    play(
        "00:00 put other lock l
            job r1
        00:00 put j lock l; batching greedy
            job r1
        00:01 run other
            other#1 00:01 starting, → #1
        00:02 trigger j a
            j#1 00:02 waiting, pending nothing (created run #1 for 1 trigger), → run #1
        00:02 trigger j b
            pending b until 00:03 (wait: 1 run has not ended, at most 1 at the same time), → pending
        00:03 ended other#1 yes
            other#1 00:01 success
        00:03 wake j#1
            j#1 00:02 starting",
    );
}

/// One unit must not give the lock to two runs.
#[test]
fn job_with_a_lock_has_one_run_of_triggers_at_a_time() {
    play(
        "00:00 put j overlap allow; lock; batching greedy 3 1
            job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:01 trigger j a
            pending a until 00:02 (wait: 1 run has not ended, at most 1 at the same time), → pending
        00:01 trigger j b
            pending a b until 00:02 (wait: 1 run has not ended, at most 1 at the same time ×2), → pending
        00:02 ended #1 yes
            #1 00:01 success
        00:02 batch j
            #2 00:02 starting, pending b until 00:03 (wait: 1 run has not ended, at most 1 at the same time)",
    );
}

#[test]
fn other_runs_of_the_job_count_whatever_started_them() {
    play(
        "00:00 put j @every 10m; batching greedy 5
            next 00:10, job r1
        00:10 due
            #1 00:10 starting, next 00:20
        00:11 trigger j a
            pending a until 00:12 (wait: 1 run has not ended, at most 1 at the same time), → pending
        00:12 ended #1 yes
            #1 00:10 success
        00:12 batch j
            #2 00:12 starting, pending nothing (created run #2 for 1 trigger)
        00:20 due
            #3 00:20 skipped: overlap, next 00:30",
    );
}

/// Both stand for the same work again.
#[test]
fn retry_and_rerun_stand_for_the_same_triggers() {
    let bench = play(
        "00:00 put j retry 2; batching greedy
            job r1
        00:01 trigger j a
            #1 00:01 starting, pending nothing (created run #1 for 1 trigger), → run #1
        00:02 ended #1 no
            #1 00:01 failure: exit code 1, #2 00:01 attempt 2 scheduled
        00:02 trigger j b
            pending b until 00:03 (wait: 1 run has not ended, at most 1 at the same time), → pending
        00:02:10 wake #2
            #2 00:01 attempt 2 starting
        00:03 ended #2 yes
            #2 00:01 attempt 2 success
        00:03 rerun #2
            #3 00:01 starting, → #3",
    );
    assert_eq!([1, 2, 3].map(|number| ids(&bench.run(None, number))), ["a", "a", "a"]);
}

#[test]
fn removed_triggers_stay_known() {
    let bench = play(
        "00:00 put j batching greedy
            job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:01 trigger j a
            pending a until 00:02 (wait: 1 run has not ended, at most 1 at the same time), → pending
        00:01 trigger j b
            pending a b until 00:02 (wait: 1 run has not ended, at most 1 at the same time ×2), → pending
        00:02 untrigger j c
            ! `j` has no pending trigger `c`
        00:02 untrigger j a
            pending b until 00:02 (removed 1 trigger by operator anna), → 1 removed
        00:02 trigger j a x=1
            → duplicate
        00:03 untrigger j all
            pending nothing (removed 1 trigger by operator anna), → 1 removed
        00:03 untrigger j all
            → 0 removed
        00:03 untrigger k all
            ! there is no job `k`",
    );
    assert_eq!(set(&bench).counts.removed, 2);
}

#[test]
fn number_of_pending_triggers_is_bounded() {
    let mut bench = play(
        "00:00 put j batching greedy
            job r1
        00:01 run j
            #1 00:01 starting, → #1",
    );
    (0..TriggerSet::PENDING_MAX).for_each(|number| drop(bench.happens(&format!("trigger j t{number}"))));
    let rejected = bench.happens("trigger j more");
    assert_eq!(
        rejected,
        ["! too many triggers of `j` are pending; at most 1000 with 256 KiB of ids, args and messages are allowed"]
    );
    // A rejected trigger has no mark, so it can be sent again.
    bench.happens("untrigger j all");
    assert_eq!(bench.happens("trigger j more").len(), 1);
    assert_eq!(set(&bench).pending.len(), 1);
}

/// What is pending when the policy is removed is not lost.
#[test]
fn job_that_loses_its_policy_runs_once_for_each_trigger() {
    let bench = play(
        "00:00 put j batching greedy
            job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:01 emit j a
            pending a until 00:02 (wait: 1 run has not ended, at most 1 at the same time), → pending
        00:01 emit j b
            pending a b until 00:02 (wait: 1 run has not ended, at most 1 at the same time ×2), → pending
        00:02 put j overlap allow
            job r2, (wake #1 00:02), (batch 00:02)
        00:02 batch j
            #2 00:02 starting, #3 00:02 starting, no triggers
        00:02 batch j
            (batch never), unchanged",
    );
    assert_eq!((ids(&bench.run(None, 2)), ids(&bench.run(None, 3))), ("a".to_owned(), "b".to_owned()));
}

#[test]
fn set_without_triggers_goes_with_the_policy() {
    play(
        "00:00 put j batching greedy
            job r1
        00:01 trigger j a
            #1 00:01 starting, pending nothing (created run #1 for 1 trigger), → run #1
        00:02 put j overlap allow
            no triggers, job r2, (wake #1 00:02)",
    );
}

#[test]
fn removed_job_drops_its_triggers() {
    let bench = play(
        "00:00 put j batching greedy
            job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:01 trigger j a
            pending a until 00:02 (wait: 1 run has not ended, at most 1 at the same time), → pending
        00:02 remove j
            no triggers, job gone, (wake #1 00:02)
        00:02 batch j
            unchanged
        00:03 put j batching greedy
            job r1
        00:03 trigger j b
            pending b until 00:04 (wait: 1 run has not ended, at most 1 at the same time), → pending",
    );
    assert_eq!(set(&bench).counts.received, 1);
}

/// The store has lost the job and the state that knows of the triggers.
#[test]
fn triggers_of_a_lost_job_are_forgotten() {
    let mut bench = play(
        "00:00 put j batching greedy
            job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:01 trigger j a
            pending a until 00:02 (wait: 1 run has not ended, at most 1 at the same time), → pending
        00:02 lose job j
        00:02 batch j
            no triggers",
    );
    assert_eq!(bench.happens("batch j"), ["unchanged"]);
}

/// The flag follows the set, whichever of the two the store has lost.
#[test]
fn state_that_contradicts_the_set_is_repaired() {
    let mut bench = play(
        "00:00 put j batching greedy
            job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:01 trigger j a
            pending a until 00:02 (wait: 1 run has not ended, at most 1 at the same time), → pending",
    );
    let key = RecordKey::JobState(job_id("j"));
    let Record::JobState(state) = bench.records[&key].record.clone() else { panic!("a state") };
    let stored = bench.records.get_mut(&key).expect("it is stored");
    stored.record = Record::JobState(JobState { has_triggers: false, ..(*state).clone() }.into());
    bench.happens("batch j");
    let Record::JobState(state) = bench.records[&key].record.clone() else { panic!("a state") };
    assert!(state.has_triggers);
}

/// Only a node that may run the job creates its runs.
#[test]
fn node_that_may_not_run_the_job_leaves_its_triggers_to_another() {
    play(
        "00:00 there 1 2:gpu
        00:00 put j nodes gpu; batching greedy
            job r1
        00:01 trigger j a
            pending a until 00:01 (wait: the node may not run the job), → pending
        00:01 batch j
            (batch 00:02), unchanged
        00:01 node 2.1
        00:01 batch j
            #1 00:01 starting, pending nothing (created run #1 for 1 trigger)",
    );
}

#[test]
fn action_on_a_job_with_a_policy_adds_a_trigger() {
    let mut bench = play(
        "00:00 put j param x; batching greedy
            job r1
        00:00 put first overlap allow; on success run j x={{state}}
            job r1
        00:01 run first
            first#1 00:01 starting, → #1
        00:02 ended first#1 yes
            first#1 00:01 success, action 0 success run j at node 1.1
        00:02 deliver first#1.0
            j#1 00:02 starting, action 0 success run j tried 1 done, pending nothing (created run #1 for 1 trigger), → run #1
        00:02 deliver first#1.0
            unchanged
        00:03 run first
            first#2 00:03 starting, → #2
        00:04 ended first#2 yes
            first#2 00:03 success, action 0 success run j at node 1.1",
    );
    let result = bench.happens("deliver first#2.0").concat();
    assert!(result.starts_with("action 0 success run j tried 1 done, pending action "), "{result}");
    assert!(result.ends_with("→ pending"), "{result}");
    let pending = set(&bench).pending;
    let of_action = bench.records.values().find_map(|stored| match &stored.record {
        Record::Action(action) if action.trigger_id() == pending[0].id => Some((action.created_run(), &action.status)),
        _ => None,
    });
    let (created, status) = of_action.expect("the action is stored");
    assert!(created.is_none() && matches!(status, ActionStatus::Done { .. }), "{created:?} {status:?}");
    assert_eq!((pending[0].by.clone(), pending[0].args.to_string()), (Actor::Action, "x=success".to_owned()));
}

/// Puts a job with these channels, each with the value of its arg `x`.
fn put_with_channels(bench: &mut DecisionBench, channels: &[(&str, &str)]) -> Result<(), Rejection> {
    let mut job = Job::new(Program::Noop { duration: cronhold_schedule::Span::ZERO });
    job.params = [("x".to_owned(), Param::default())].into_iter().collect();
    let template = |text: &str| Template::parse(text).expect("a template");
    let trigger = |(channel, x): &(&str, &str)| Trigger {
        channel: (*channel).to_owned(),
        args: BTreeMap::from([("x".to_owned(), template(x))]),
        ..Trigger::default()
    };
    job.triggers = channels.iter().map(trigger).collect();
    let (source, uid, provided) = (JobSource::Api, JobUid::from_bits(1), Precondition::Any);
    let command = Command::PutJob { id: job_id("j"), job: Arc::new(job), source, uid, provided };
    bench.execute(Actor::Operator("anna".to_owned()), &command).map(drop)
}

fn send(bench: &mut DecisionBench, number: u32, channel: &str, message: &str) -> Result<(), Rejection> {
    let trigger = TriggerId::parse(&format!("message 1.{number}")).expect("an id");
    let channel = Channel::parse(channel).expect("a channel");
    let message = Some(Box::new(TriggerMessage { channel, message: JsonText::parse(message).expect("JSON") }));
    let id = RunId::from_key(bench.now, trigger.as_str());
    let command = Command::Trigger { job: job_id("j"), args: BTreeMap::new(), trigger, message, id };
    bench.execute(Actor::Channel, &command).map(drop)
}

/// Messages are batched although the job names no policy, and the nearest channel gives the args.
#[test]
fn messages_are_triggers_with_the_args_of_their_channel() {
    let mut bench = DecisionBench::new();
    put_with_channels(&mut bench, &[("/a", "{{ channel }}"), ("/a/b", "{{ message.x }}")]).expect("a job");
    let x = |bench: &DecisionBench, number| bench.run(None, number).args.to_string();
    send(&mut bench, 1, "/a/c", "null").expect("received");
    assert_eq!((x(&bench, 1).as_str(), bench.runs().count()), ("x=/a/c", 1));
    // The first run has not ended. A message that is sent again changes nothing.
    for (number, channel, message) in
        [(2, "/a/b", r#"{"x":7}"#), (3, "/a/b/c", r#"{"x":7}"#), (2, "/a/b", r#"{"x":7}"#), (1, "/a/c", "null")]
    {
        send(&mut bench, number, channel, message).expect("received");
    }
    let ids: Vec<String> = set(&bench).pending.iter().map(|trigger| trigger.id.to_string()).collect();
    assert_eq!(ids, ["message 1.2", "message 1.3"]);
    assert!(matches!(send(&mut bench, 4, "/a/b", "7"), Err(Rejection::TriggerArg { .. })));
    let large = JsonText::of_text(&"x".repeat(TriggerMessage::BYTES_MAX));
    assert!(matches!(send(&mut bench, 5, "/a", large.as_str()), Err(Rejection::MessageTooLarge { .. })));
    bench.happens("ended #1 yes");
    bench.happens("batch j");
    let second = bench.run(None, 2);
    let run_ids = self::ids(&second);
    assert_eq!((x(&bench, 2).as_str(), ids.join(" ")), ("x=7", run_ids));
    assert_eq!(
        second.triggers[1].message.as_ref().map(|message| message.channel.to_string()).as_deref(),
        Some("/a/b/c")
    );
}

#[test]
fn job_cannot_start_itself_by_a_message() {
    let mut bench = DecisionBench::new();
    for channel in ["/", "/cronhold", "/cronhold/run/j", "/cronhold/run/j/failure"] {
        let refused = put_with_channels(&mut bench, &[("/a", "1"), (channel, "1")]);
        assert!(matches!(refused, Err(Rejection::TriggersItself { .. })), "{channel}: {refused:?}");
    }
    put_with_channels(&mut bench, &[("/cronhold/run/jj", "1"), ("/cronhold/run/k/success", "1")]).expect("other jobs");
}
