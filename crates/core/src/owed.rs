//! The effects that a record owes. A node performs what the records of a commit owe, and at its start what all stored
//! records owe. So an effect that a crash prevented is performed by the same rule, and recovery has no logic of its
//! own.

use std::sync::Arc;

use crate::decision::{Effect, RecordChange};
use crate::ids::{JobId, NodeId};
use crate::record::{ActionRecord, PauseState, Record, RecordKey, ResolvedAction, Run, RunOwner};
use crate::run::State;
use crate::when::When;

/// The effects that a record owes on node `me`. The incarnation in `me` distinguishes a run of this process from one
/// that an earlier process of the same node started.
pub fn owed(record: &Record, me: RunOwner) -> Vec<Effect> {
    match record {
        Record::Cursor(cursor) => {
            let next = cursor.next.zip(cursor.wake);
            vec![Effect::Plan { job: cursor.job.clone(), schedule: cursor.schedule.clone(), next }]
        }
        Record::Backlog(backlog) => {
            let at = backlog.due.into();
            vec![Effect::CatchUp { job: backlog.job.clone(), schedule: backlog.schedule.clone(), at }]
        }
        Record::Run(run) => owed_by_run(run, me),
        Record::Action(action) => owed_by_action(action, me),
        // Any change of a job's state may let the head of its queue start: the first run that any node may start, and
        // the first that only this node may start. Runs for other nodes are woken by those nodes.
        Record::JobState(state) => {
            let first = |target: Option<NodeId>| state.queue.iter().find(move |queued| queued.target == target);
            let heads = first(None).into_iter().chain(first(Some(me.node)));
            let wakes = heads.map(|head| Effect::Wake { run: head.run, at: When::Now });
            // So may it make a batch of triggers possible.
            let batch = state.has_triggers.then(|| Effect::PlanBatch { job: state.job.clone(), at: When::Now });
            wakes.chain(end_of_pause(&state.pauses, Some(&state.job))).chain(batch).collect()
        }
        Record::Triggers(set) => vec![Effect::PlanBatch { job: set.job.clone(), at: set.due.into() }],
        Record::Pause(pauses) => end_of_pause(pauses, None).into_iter().collect(),
        Record::SkipSpan(_)
        | Record::Job(_)
        | Record::Identity(_)
        | Record::Lock(_)
        | Record::Pool(_)
        | Record::Node(_)
        | Record::Foreign(_) => Vec::new(),
    }
}

/// The planned end of a pause that ends by itself.
fn end_of_pause(pauses: &PauseState, job: Option<&JobId>) -> Option<Effect> {
    let at = pauses.current.as_ref()?.until?;
    Some(Effect::EndPause { job: job.cloned(), at })
}

/// The effects that a change owes. Deleting a record cancels what it owed.
pub fn owed_by(change: &RecordChange, me: RunOwner) -> Vec<Effect> {
    match change {
        RecordChange::Put(record) => owed(record, me),
        RecordChange::Delete(RecordKey::Cursor(job, schedule)) => {
            vec![Effect::Plan { job: job.clone(), schedule: schedule.clone(), next: None }]
        }
        RecordChange::Delete(RecordKey::Backlog(job, schedule)) => {
            vec![Effect::CatchUp { job: job.clone(), schedule: schedule.clone(), at: When::Never }]
        }
        RecordChange::Delete(RecordKey::Action(action)) => {
            vec![Effect::PlanDelivery { action: *action, at: When::Never }]
        }
        RecordChange::Delete(RecordKey::Triggers(job)) => {
            vec![Effect::PlanBatch { job: job.clone(), at: When::Never }]
        }
        RecordChange::Delete(RecordKey::Run(run)) => vec![Effect::Wake { run: *run, at: When::Never }],
        RecordChange::Delete(_) => Vec::new(),
    }
}

fn owed_by_run(run: &Arc<Run>, me: RunOwner) -> Vec<Effect> {
    let mut effects = vec![Effect::Wake { run: run.id, at: run.next_check().into() }];
    if run.state == State::Waiting && !run.probes.is_empty() {
        return owed_by_probes(run, me);
    }
    let run = Arc::clone(run);
    match (run.state, run.owner) {
        (State::Starting, Some(owner)) if owner == me => effects.push(Effect::Launch { run }),
        (State::Stopping, Some(owner)) if owner == me => effects.push(Effect::Stop { run }),
        (State::Starting | State::Running | State::Stopping, Some(owner)) if owner != me && owner.node == me.node => {
            effects.push(Effect::Adopt { run });
        }
        // Another node owns the run and watches its due time.
        (State::Starting | State::Running | State::Stopping, Some(owner)) if owner.node != me.node => effects.clear(),
        _ => {}
    }
    effects
}

/// A waiting run owes the checks that this node has been asked for. Those of an earlier process of this node are lost,
/// so the run is checked now.
fn owed_by_probes(run: &Arc<Run>, me: RunOwner) -> Vec<Effect> {
    let asked = || run.probes.iter().filter_map(|probe| Some((probe.attempt, probe.asked?.owner)));
    let is_lost = asked().any(|(_, owner)| owner.node == me.node && owner != me);
    let at = if is_lost { When::Now } else { run.next_check().into() };
    let mine = asked().filter(|(_, owner)| *owner == me);
    let probes = mine.map(|(attempt, _)| Effect::Probe { run: Arc::clone(run), attempt });
    std::iter::once(Effect::Wake { run: run.id, at }).chain(probes).collect()
}

fn owed_by_action(action: &Arc<ActionRecord>, me: RunOwner) -> Vec<Effect> {
    let is_decided_here = matches!(action.work, ResolvedAction::Run { .. });
    let at = match action.owner() {
        // An earlier process of this node has begun an attempt, and cannot end it any more.
        Some(owner) if owner.node == me.node && owner != me => When::Now,
        Some(owner) if owner == me && is_decided_here => When::Now,
        _ => action.due().into(),
    };
    let mut effects = vec![Effect::PlanDelivery { action: action.id, at }];
    if action.owner() == Some(me) && !is_decided_here {
        effects.push(Effect::Deliver { action: Arc::clone(action) });
    }
    effects
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::Instant;

    use super::*;
    use crate::ids::{JobUid, RunId, RunNumber};
    use crate::record::{JobState, ProbeLease, ProbeState, QueuedRun, ResolvedProbe};

    const ME: RunOwner = RunOwner { node: NodeId::from_bits(1), incarnation: 2 };

    fn run(state: State, owner: Option<RunOwner>, due: Option<Instant>) -> Run {
        let job = JobId::parse("j").expect("an id");
        let run = Run::blank(id(1), RunNumber(1), job, JobUid::from_bits(1), Instant::EPOCH);
        Run { state, owner, due, ..run }
    }

    fn id(number: u32) -> RunId {
        RunId::from_key(Instant::EPOCH, &number.to_string())
    }

    fn text(effects: &[Effect]) -> String {
        let one = |effect: &Effect| match effect {
            Effect::Wake { at: When::At(at), .. } => format!("wake {}", at.secs()),
            Effect::Wake { at, .. } => format!("wake {at:?}").to_lowercase(),
            Effect::Launch { .. } => "launch".to_owned(),
            Effect::Adopt { .. } => "adopt".to_owned(),
            Effect::Stop { .. } => "stop".to_owned(),
            Effect::Probe { attempt, .. } => format!("probe {attempt}"),
            other => format!("{other:?}"),
        };
        effects.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn run_owes_a_launch_a_stop_or_an_adoption_by_state_and_owner() {
        let earlier = RunOwner { incarnation: 1, ..ME };
        let other = RunOwner { node: NodeId::from_bits(2), incarnation: 2 };
        for (state, owner, due, expected) in [
            (State::Scheduled, None, Some(60), "wake 60"),
            (State::Waiting, None, Some(60), "wake 60"),
            (State::Starting, Some(ME), Some(10), "wake 10, launch"),
            (State::Running, Some(ME), Some(90), "wake 90"),
            (State::Running, Some(ME), None, "wake never"),
            (State::Stopping, Some(ME), Some(30), "wake 30, stop"),
            (State::Starting, Some(earlier), Some(10), "wake 10, adopt"),
            (State::Running, Some(earlier), None, "wake never, adopt"),
            (State::Stopping, Some(earlier), Some(30), "wake 30, adopt"),
            (State::Starting, Some(other), Some(10), ""),
            (State::Running, Some(other), Some(10), ""),
            (State::Stopping, Some(other), Some(10), ""),
            (State::Success, Some(ME), None, "wake never"),
            (State::Failure, Some(other), None, "wake never"),
            (State::Skipped, None, None, "wake never"),
        ] {
            let record = Record::Run(Arc::new(run(state, owner, due.map(Instant::from_secs))));
            assert_eq!(text(&owed(&record, ME)), expected, "{state} {owner:?}");
            assert_eq!(owed_by(&RecordChange::Put(record.clone()), ME), owed(&record, ME));
        }
        assert_eq!(text(&owed_by(&RecordChange::Delete(RecordKey::Run(id(1))), ME)), "wake never");
    }

    #[test]
    fn waiting_run_owes_the_checks_of_this_process() {
        let earlier = RunOwner { incarnation: 1, ..ME };
        let other = RunOwner { node: NodeId::from_bits(2), incarnation: 2 };
        let lease = |owner| ProbeLease { owner, until: Instant::from_secs(90) };
        for (owners, expected) in [
            (vec![Some(ME), Some(other), None], "wake 60, probe 1"),
            (vec![Some(ME), Some(ME)], "wake 60, probe 1, probe 2"),
            (vec![Some(other)], "wake 60"),
            (vec![None, Some(earlier)], "wake now"),
        ] {
            let mut run = run(State::Waiting, None, Some(Instant::from_secs(60)));
            run.probes = (1..)
                .zip(&owners)
                .map(|(attempt, owner)| ProbeState {
                    attempt,
                    asked: owner.map(lease),
                    ..ProbeState::new(ResolvedProbe::File("/a".to_owned()))
                })
                .collect();
            assert_eq!(text(&owed(&Record::Run(Arc::new(run)), ME)), expected, "{owners:?}");
        }
    }

    #[test]
    fn job_state_owes_a_wake_of_the_head_of_its_queue_now() {
        let mut state = JobState::new(JobId::parse("j").expect("an id"));
        let effects = |state: &JobState| owed(&Record::JobState(Arc::new(state.clone())), ME);
        assert_eq!(effects(&state), []);
        state.queue = vec![id(2).into(), id(3).into()];
        let wake = |number| Effect::Wake { run: id(number), at: When::Now };
        assert_eq!(effects(&state), [wake(2)]);
        // Runs that only another node may start do not block the queue, and this node does not wake them.
        let on = |number, node| QueuedRun { run: id(number), target: Some(NodeId::from_bits(node)) };
        state.queue = vec![on(4, 2), on(5, 1), id(6).into(), on(7, 1), on(8, 2)];
        assert_eq!(effects(&state), [wake(6), wake(5)]);
    }
}
