//! Creates the actions that transitions of runs cause. Every decision that writes a run passes here, so no transition can
//! miss its actions: the entries that a decision adds to the log of a run are the events.

use std::sync::Arc;

use super::bind_action::{self, EventSource};
use super::draft::UnitDraft;
use crate::ids::RunId;
use crate::job::{ActionKind, ActionRule, RunEvent};
use crate::policy::action_filter;
use crate::policy::catch_up::CountedRange;
use crate::policy::delivery;
use crate::record::{
    ActionId, ActionRecord, ActionStatus, JobRecord, Record, RecordKey, ResolvedAction, Run, Transition, TransitionKind,
};
use crate::run::State;
use crate::view::DecisionView;

/// Adds the actions that the runs and the spans of skips of a draft cause. The definition of a job may be older than the
/// stored one: a change of `on` and a transition have no order unless the decision reads the job anyway.
pub(super) fn add_actions(draft: &mut UnitDraft<'_>) {
    for run in draft.written_runs() {
        let before = draft.view.loaded_run(run.id).map_or(0, |before| before.log.len());
        let is_event = |entry: &&Transition| matches!(entry.kind, TransitionKind::Entered | TransitionKind::Late);
        let entries: Vec<&Transition> = run.log.iter().skip(before).filter(is_event).collect();
        if entries.is_empty() {
            continue;
        }
        let Some(job) = job_with_actions(draft, &run) else { continue };
        let mut count = run.actions;
        for entry in entries {
            for event in events_of(&run, entry) {
                let missed = (event == RunEvent::Missed).then_some(CountedRange::one(run.nominal));
                add_of_event(draft, &mut count, &job, event, EventSource { run: &run, entry, missed });
            }
            add_message(draft, &mut count, &job, EventSource { run: &run, entry, missed: None });
        }
        if count != run.actions {
            draft.put_run(Run { actions: count, ..(*run).clone() });
        }
    }
    for span in draft.created_spans() {
        let listed = span.to_listed_run();
        let (Some(entry), true) = (span.log.last(), span.reason.is_missed()) else { continue };
        let Some(job) = job_with_actions(draft, &listed) else { continue };
        let mut count = span.actions;
        let source = EventSource { run: &listed, entry, missed: Some(span.range) };
        add_of_event(draft, &mut count, &job, RunEvent::Missed, source);
        add_message(draft, &mut count, &job, source);
        if count != span.actions {
            let mut span = (*span).clone();
            span.actions = count;
            draft.put_skip_span(span);
        }
    }
}

/// The job of a run, if it or the node has any actions, or some runs have subscribers.
fn job_with_actions(draft: &UnitDraft<'_>, run: &Run) -> Option<Arc<JobRecord>> {
    let job = draft.known_job(&run.job).filter(|job| job.uid == run.uid)?;
    let world = draft.view.world;
    (!job.job.on.is_empty() || !world.defaults.on.is_empty() || !world.run_channels.is_empty()).then_some(job)
}

/// The events that an entry of a run's log is. The end of an attempt that is retried is not an end.
fn events_of(run: &Run, entry: &Transition) -> impl Iterator<Item = RunEvent> + use<> {
    let is_entered = entry.kind == TransitionKind::Entered;
    let is_end = is_entered && entry.state.is_finished();
    let is_retried = is_end && run.retried_by.is_some();
    // An occurrence that has had an attempt was not missed.
    let is_occurrence = run.schedule.is_some() && run.attempt == 1;
    let is_skipped = is_end && entry.state == State::Skipped && run.state == State::Skipped;
    let is_missed = is_skipped && is_occurrence && run.reason.as_ref().is_some_and(|reason| reason.is_missed());
    let events = [
        (RunEvent::Late, entry.kind == TransitionKind::Late),
        (RunEvent::State(entry.state), is_entered && !is_retried),
        (RunEvent::Finished, is_end && !is_retried),
        (RunEvent::Missed, is_missed),
    ];
    events.into_iter().filter_map(|(event, happens)| happens.then_some(event))
}

/// Adds the actions that a job and this node have for an event. `count` is the number of actions that the run or the span
/// has.
fn add_of_event(draft: &mut UnitDraft<'_>, count: &mut u32, job: &JobRecord, event: RunEvent, source: EventSource<'_>) {
    let view = draft.view;
    let own = job.job.on.get(&event).into_iter().flatten();
    let rules: Vec<&ActionRule> = own.chain(view.world.defaults.additional(&job.id, &job.job, event)).collect();
    for rule in rules {
        // A mark of a run is an outcome like its end.
        let step = draft.outcome_step(source.run.id).filter(|step| step.after.last == source.entry.state);
        let is_selected = rule
            .when
            .as_ref()
            .is_none_or(|filter| action_filter::selects(filter, event, &job.job.labels, &source.run.args, step));
        if is_selected {
            let id = next_id(view, source.run.id, count);
            let work = bind_action::work(view.world, id, event, job, source, &rule.action);
            let record = create(view, id, event, source, work.map_err(|error| (rule.action.kind(), error)));
            draft.put(Record::Action(Arc::new(record)));
        }
    }
}

/// Adds the message about a transition, if a port subscribes to it.
fn add_message(draft: &mut UnitDraft<'_>, count: &mut u32, job: &JobRecord, source: EventSource<'_>) {
    let (view, entry) = (draft.view, source.entry);
    if entry.kind == TransitionKind::Entered && view.world.run_channels.hear(&job.id, entry.state) {
        let id = next_id(view, source.run.id, count);
        let work = bind_action::transition(source);
        let record = create(view, id, RunEvent::State(entry.state), source, Ok(work));
        draft.put(Record::Action(Arc::new(record)));
    }
}

/// The id of the next action of a run. A run whose record could not be read may have more actions than its new record
/// says.
fn next_id(view: &DecisionView<'_>, run: RunId, count: &mut u32) -> ActionId {
    loop {
        let id = ActionId::new(run, *count);
        *count += 1;
        if view.assume_absent_unless_loaded(&RecordKey::Action(id)).is_none() {
            return id;
        }
    }
}

fn create(
    view: &DecisionView<'_>,
    id: ActionId,
    event: RunEvent,
    source: EventSource<'_>,
    work: Result<ResolvedAction, (ActionKind, String)>,
) -> ActionRecord {
    let now = view.stamp.at;
    let (work, error) = match work {
        Ok(work) => (work, None),
        Err((kind, error)) => (ResolvedAction::Invalid(kind), Some(error)),
    };
    let kind = work.kind();
    let is_valid = error.is_none();
    // The node that decides begins the first attempt with this commit. Without a node, any of them does.
    let owner = Some(view.stamp.owner).filter(|_| view.world.is_node);
    let due = if owner.is_some() { now.plus(delivery::lease(kind)) } else { now };
    let status = if is_valid { ActionStatus::Pending { due, owner } } else { ActionStatus::Failed { at: now } };
    let is_begun = is_valid && owner.is_some() && kind != ActionKind::Run;
    let mut record = ActionRecord {
        id,
        job: source.run.job.clone(),
        event,
        created: now,
        work,
        attempts: u32::from(is_begun),
        failures: 0,
        error: None,
        status,
    };
    if let Some(error) = error {
        record.set_error(&error);
    }
    record
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use cronhold_schedule::Span;

    use crate::decide::testing::{DecisionBench, play};
    use crate::job::{Action, ActionRule, JobDefaults, RunEvent};
    use crate::record::{ActionStatus, Record, ResolvedAction};
    use crate::run::State;
    use crate::task::{Channel, RunChannels};
    use crate::template::Template;

    /// Each combination of args has outcomes of its own, in the state of the job or in an identity.
    #[test]
    fn filters_read_the_outcomes_before() {
        play(
            "00:00 put j param r; overlap allow; on failure 2-in-a-row run alarm; on success recovered run fine; on finished changed r=eu run news
                job r1
            00:01 run j r=eu
                #1 00:01 starting, → #1
            00:01 ended #1 no
                #1 00:01 failure: exit code 1, action 0 finished run news at node 1.1
            00:02 run j r=us
                #2 00:02 starting, → #2
            00:02 ended #2 no
                #2 00:02 failure: exit code 1
            00:03 run j r=eu
                #3 00:03 starting, → #3
            00:03 ended #3 no
                #3 00:03 failure: exit code 1, action 0 failure run alarm at node 1.1
            00:04 run j r=eu
                #4 00:04 starting, → #4
            00:04 ended #4 no
                #4 00:04 failure: exit code 1
            00:05 run j r=us
                #5 00:05 starting, → #5
            00:05 ended #5 yes
                #5 00:05 success, action 0 success run fine at node 1.1
            00:06 mark #4 success
                #4 00:04 success: by operator, action 0 success run fine at node 1.1, action 1 finished run news at node 1.1
            00:07 mark #4 skipped
                #4 00:04 skipped: by operator",
        );
    }

    #[test]
    fn outcomes_of_retried_and_skipped_runs_do_not_count() {
        play(
            "00:00 put j @every 1h; retry 2; on failure 2-in-a-row run alarm; on error 1-in-a-row run broken
                next 01:00, job r1
            01:00 due
                #1 01:00 starting, next 02:00
            01:01 ended #1 no
                #1 01:00 failure: exit code 1, #2 01:00 attempt 2 scheduled
            01:02 wake
                #2 01:00 attempt 2 starting
            01:02 ended #2 no
                #2 01:00 attempt 2 failure: exit code 1
            02:00 due
                #3 02:00 starting, next 03:00
            02:01 run j
                #4 02:01 skipped: overlap, → #4
            02:02 ended #3 no
                #3 02:00 failure: exit code 1, #5 02:00 attempt 2 scheduled
            02:03 wake
                #5 02:00 attempt 2 starting
            02:03 unlaunched #5 no such file
                #5 02:00 attempt 2 error: not launched: no such file, action 0 error run broken at node 1.1
            03:00 due
                #6 03:00 starting, next 04:00
            03:00 ended #6 no
                #6 03:00 failure: exit code 1, #7 03:00 attempt 2 scheduled
            03:01 wake
                #7 03:00 attempt 2 starting
            03:01 ended #7 no
                #7 03:00 attempt 2 failure: exit code 1, action 0 failure run alarm at node 1.1",
        );
    }

    #[test]
    fn missed_occurrences_cause_one_event() {
        let mut bench = play(
            "00:00 put j @every 10m; catch_up none; on missed run alarm; on skipped run other; skipped 0
                next 00:10, job r1
            00:15 due
                #1 00:10 skipped: missed, action 0 skipped run other at node 1.1, action 1 missed run alarm at node 1.1, next 00:20
            00:55 due
                #2 00:20–00:50 ×4 skipped: missed, action 0 missed run alarm at node 1.1, next 01:00
            01:25 due
                #2 00:20–01:20 ×7 skipped: missed, next 01:30
            01:26 pause j
                job paused
            03:00 resume j
                job resumed, (plan 01:30)
            03:00 due
                #3 01:30–02:50 ×9 skipped: paused, #4 03:00 starting, next 03:10
            03:01 prune j j#2 j#3
                unchanged",
        );
        // Only its action has kept the older span, and both go together.
        for stored in bench.records.values_mut() {
            if let Record::Action(action) = &mut stored.record {
                Arc::make_mut(action).status = ActionStatus::Done { at: bench.now };
            }
        }
        assert_eq!(bench.happens("prune j j#2 j#3"), ["#2 gone, action 0 gone"]);
    }

    #[test]
    fn occurrences_that_the_job_skips_are_not_missed() {
        play(
            "00:00 put j @every 10m; overlap queue 1; on missed run alarm
                next 00:10, job r1
            00:10 due
                #1 00:10 starting, next 00:20
            00:20 due
                #2 00:20 waiting, next 00:30
            00:30 due
                #3 00:30 skipped: queue full, action 0 missed run alarm at node 1.1, next 00:40
            00:31 put j @every 10m; overlap skip; on missed run alarm
                job r2, (wake #2 00:31), (wake #1 00:31)
            00:40 due
                #4 00:40 skipped: overlap, next 00:50",
        );
    }

    /// Only a transition whose channel has a subscriber has a message, each attempt of a run its own.
    #[test]
    fn transitions_with_subscribers_are_published() {
        let mut bench = DecisionBench::new();
        let channels = ["/cronhold/run/j/failure", "/cronhold/run/k", "/prices"];
        let channels = channels.map(|text| Channel::parse(text).expect("a channel"));
        bench.world.run_channels = Arc::new(RunChannels::new(channels));
        for (command, expected) in [
            ("put j overlap allow; retry 2; on failure command true", "job r1"),
            ("put k overlap allow", "job r1"),
            ("run j", "j#1 00:03 starting, → #1"),
            (
                "ended j#1 no",
                "j#1 00:03 failure: exit code 1, j#2 00:03 attempt 2 scheduled, action 0 failure publish /cronhold/run/j/failure tried 1 at node 1.1",
            ),
            (
                "run k",
                "k#1 00:05 starting, action 0 waiting publish /cronhold/run/k/waiting tried 1 at node 1.1, action 1 starting publish /cronhold/run/k/starting tried 1 at node 1.1, → #1",
            ),
        ] {
            bench.now = bench.now.plus(Span::from_secs(60));
            assert_eq!(bench.happens(command).concat(), expected);
        }
    }

    /// The actions of a node are added to those of the job, unless it declines them, and are stored with the event.
    #[test]
    fn defaults_of_the_node_apply_to_every_job() {
        let template = |text| Template::parse(text).expect("a template");
        let run = |job| ActionRule::always(Action::Run { job: template(job), args: BTreeMap::new() });
        let mut bench = DecisionBench::new();
        let failure = RunEvent::State(State::Failure);
        let on = BTreeMap::from([(failure, vec![run("alarm"), run("own")]), (RunEvent::Late, vec![run("late")])]);
        bench.world.defaults = Arc::new(JobDefaults { on });
        let mut happens = |job: &str, items: &str| {
            bench.happens(&format!("put {job} overlap allow; {items}"));
            bench.now = bench.now.plus(Span::from_secs(1));
            bench.happens(&format!("run {job}"));
            bench.happens(&format!("ended {job}#1 no")).concat()
        };
        for (job, items, expected) in [
            ("plain", "", "action 0 failure run alarm at node 1.1, action 1 failure run own at node 1.1"),
            (
                "mine",
                "on failure run own",
                "action 0 failure run own at node 1.1, action 1 failure run alarm at node 1.1",
            ),
            ("alarm", "", "action 0 failure run own at node 1.1"),
        ] {
            let found = happens(job, items);
            assert!(found.ends_with(&format!("failure: exit code 1, {expected}")), "{found}");
        }
    }

    #[test]
    fn summaries_say_what_was_late_or_missed() {
        let bench = play(
            "00:00 put j @every 10m; late 1m; catch_up none; on late email ops@example.org; on missed email ops@example.org; on missed command echo {{missed_count}} {{missed_until}} {{state}}
                next 00:10, job r1
            00:10 due
                #1 00:10 starting, next 00:20
            00:11 wake
                #1 00:10 starting, action 0 late email ops@example.org tried 1 at node 1.1
            00:55 due
                #2 00:20–00:50 ×4 skipped: missed, action 0 missed email ops@example.org tried 1 at node 1.1, action 1 missed command tried 1 at node 1.1, next 01:00",
        );
        let mut texts: Vec<String> = bench
            .records
            .values()
            .filter_map(|stored| match &stored.record {
                Record::Action(action) => match &action.work {
                    ResolvedAction::Email { subject, body, .. } => Some(format!("{subject}: {body}")),
                    ResolvedAction::Command(process) => Some(format!("{:?} {:?}", process.command, process.env)),
                    _ => None,
                },
                _ => None,
            })
            .collect();
        texts.sort();
        let has =
            |text: &str, parts: &[&str]| parts.iter().for_each(|part| assert!(text.contains(part), "{part} in {text}"));
        has(&texts[0], &["echo 4 2026-01-05T00:50:00Z skipped", "CRONHOLD_MISSED_COUNT", "CRONHOLD_MISSED_UNTIL"]);
        has(&texts[1], &["j#1 late: j#1 is late (starting): not finished by 2026-01-05T00:11:00Z"]);
        has(&texts[2], &["j#2 missed 4 times: j#2 is missed: missed", "missed   4, the last at 2026-01-05T00:50:00Z"]);
    }
}
