//! What a record owes the world. Effects of a commit are what its records owe, and a node that starts asks the same of
//! everything stored, so that what a crash prevented is done by the same rule.

use cronhold_schedule::Instant;

use crate::decision::{Change, Effect};
use crate::ids::NodeId;
use crate::record::{Key, Owner, Record, Run};
use crate::run::State;

/// What a record owes, seen by a node in one of its lives.
pub fn owed(record: &Record, me: Owner) -> Vec<Effect> {
    match record {
        Record::Cursor(cursor) => {
            let next = cursor.next.zip(cursor.wake);
            vec![Effect::Plan { job: cursor.job.clone(), schedule: cursor.schedule.clone(), next }]
        }
        Record::Backlog(backlog) => {
            let at = Some(backlog.due);
            vec![Effect::CatchUp { job: backlog.job.clone(), schedule: backlog.schedule.clone(), at }]
        }
        Record::Run(run) => of_run(run, me),
        // Whoever waits at the head may start as soon as something changed: the first that any node may start, and the
        // first that only this one may. Others are woken by theirs.
        Record::JobState(state) => {
            let first = |target: Option<NodeId>| state.queue.iter().find(move |queued| queued.target == target);
            let heads = first(None).into_iter().chain(first(Some(me.node)));
            heads.map(|head| Effect::Wake { run: head.run, at: Some(Instant::EPOCH) }).collect()
        }
        Record::Pause(_)
        | Record::Job(_)
        | Record::Identity(_)
        | Record::Lock(_)
        | Record::Node(_)
        | Record::Foreign(_) => Vec::new(),
    }
}

/// What a change owes: what its record owes, or that nothing is owed any more.
pub fn owed_by(change: &Change, me: Owner) -> Vec<Effect> {
    match change {
        Change::Put(record) => owed(record, me),
        Change::Delete(Key::Cursor(job, schedule)) => {
            vec![Effect::Plan { job: job.clone(), schedule: schedule.clone(), next: None }]
        }
        Change::Delete(Key::Backlog(job, schedule)) => {
            vec![Effect::CatchUp { job: job.clone(), schedule: schedule.clone(), at: None }]
        }
        Change::Delete(Key::Run(run)) => vec![Effect::Wake { run: *run, at: None }],
        Change::Delete(_) => Vec::new(),
    }
}

fn of_run(run: &std::sync::Arc<Run>, me: Owner) -> Vec<Effect> {
    let mut effects = vec![Effect::Wake { run: run.id, at: run.due }];
    let run = std::sync::Arc::clone(run);
    match (run.state, run.owner) {
        (State::Starting, Some(owner)) if owner == me => effects.push(Effect::Launch { run }),
        (State::Stopping, Some(owner)) if owner == me => effects.push(Effect::Stop { run }),
        (State::Starting | State::Running | State::Stopping, Some(owner)) if owner != me && owner.node == me.node => {
            effects.push(Effect::Adopt { run });
        }
        // Runs of other nodes are theirs, and so is their due.
        (State::Starting | State::Running | State::Stopping, Some(owner)) if owner.node != me.node => effects.clear(),
        _ => {}
    }
    effects
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ids::{JobId, JobUid, RunId, RunNumber};
    use crate::record::{JobState, Queued};

    const ME: Owner = Owner { node: NodeId::from_bits(1), incarnation: 2 };

    fn run(state: State, owner: Option<Owner>, due: Option<Instant>) -> Run {
        let job = JobId::parse("j").expect("an id");
        let run = Run::blank(id(1), RunNumber(1), job, JobUid::from_bits(1), Instant::EPOCH);
        Run { state, owner, due, ..run }
    }

    fn id(number: u32) -> RunId {
        RunId::from_key(Instant::EPOCH, &number.to_string())
    }

    fn text(effects: &[Effect]) -> String {
        let one = |effect: &Effect| match effect {
            Effect::Wake { at: Some(at), .. } => format!("wake {}", at.secs()),
            Effect::Wake { at: None, .. } => "wake never".to_owned(),
            Effect::Launch { .. } => "launch".to_owned(),
            Effect::Adopt { .. } => "adopt".to_owned(),
            Effect::Stop { .. } => "stop".to_owned(),
            other => format!("{other:?}"),
        };
        effects.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_runs_owe() {
        let earlier = Owner { incarnation: 1, ..ME };
        let other = Owner { node: NodeId::from_bits(2), incarnation: 2 };
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
            assert_eq!(owed_by(&Change::Put(record.clone()), ME), owed(&record, ME));
        }
        assert_eq!(text(&owed_by(&Change::Delete(Key::Run(id(1))), ME)), "wake never");
    }

    #[test]
    fn the_first_in_line_is_woken() {
        let mut state = JobState::new(JobId::parse("j").expect("an id"));
        let effects = |state: &JobState| owed(&Record::JobState(Arc::new(state.clone())), ME);
        assert_eq!(effects(&state), []);
        state.queue = vec![id(2).into(), id(3).into()];
        let wake = |number| Effect::Wake { run: id(number), at: Some(Instant::EPOCH) };
        assert_eq!(effects(&state), [wake(2)]);
        // Those of other nodes are not in the way, and not this node's to wake.
        let on = |number, node| Queued { run: id(number), target: Some(NodeId::from_bits(node)) };
        state.queue = vec![on(4, 2), on(5, 1), id(6).into(), on(7, 1), on(8, 2)];
        assert_eq!(effects(&state), [wake(6), wake(5)]);
    }
}
