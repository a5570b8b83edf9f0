//! Carries out the command of an event that every node receives. The first node does it and takes a lock in the same
//! unit; a node that finds the lock held by another does nothing.
//!
//! The lock expires after a moment and is never renewed: all nodes receive an event within that time, and an equal
//! event that comes later is a new one.

use cronhold_schedule::Span;

use crate::command::Command;
use crate::decision::{Answer, Done, Effect, Rejection, Take};
use crate::ids::RunId;
use crate::record::LockName;
use crate::view::{Halt, View};

/// How long the lock of an event is held. An equal event after that time is a new one.
const TTL: Span = Span::from_millis(500);

pub(super) fn decide(view: &View<'_>, once: &LockName, holder: RunId, command: &Command) -> Result<Done, Halt> {
    if view.lock(once).is_some_and(|held| held.holder != holder) {
        return Ok(unchanged());
    }
    let mut done = match super::dispatch(view, command) {
        // The node that has the program receives the event as well.
        Err(Halt::Reject(Rejection::RunsElsewhere(_))) => return Ok(unchanged()),
        decided => decided?,
    };
    if does_something(&done) {
        done.take.push(Take { lock: once.clone(), holder, ttl: Some(TTL) });
    }
    Ok(done)
}

fn does_something(done: &Done) -> bool {
    let sends = |effect: &Effect| matches!(effect, Effect::Signal { .. });
    !done.changes.is_empty() || !done.take.is_empty() || !done.free.is_empty() || done.effects.iter().any(sends)
}

fn unchanged() -> Done {
    Done { answer: Answer::Unchanged, ..Done::default() }
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    /// Words after `event` are a digest and who has heard it.
    #[test]
    fn event_is_carried_out_by_the_first_node_only() {
        play(
            "00:00 there 1 2
            00:00 put j overlap allow
                job r1
            00:01 event e1 one pause j
                job paused
            00:01 node 2.1
            00:01 event e1 two pause j
                unchanged
            00:01 event e1 two resume j
                unchanged
            00:01 event e2 two resume j
                job resumed
            00:01 node 1.1
            00:01 event e2 one resume j
                unchanged
            00:01 event e1 one resume j
                ! the job `j` is not paused
            00:02 expired #cronhold/event/e1
            00:02 event e1 one pause j
                job paused",
        );
    }

    /// Whoever has nothing to do does not keep others from doing it.
    #[test]
    fn event_that_changes_nothing_takes_no_lock() {
        play(
            "00:00 there 1 2
            00:00 put j @every 10m
                next 00:10, job r1
            00:01 event e1 one put j @every 10m
                unchanged
            00:01 node 2.1
            00:01 event e1 two put j @every 20m
                next 00:20, gone, job r2",
        );
    }

    /// A program is reached by the node that has it, whoever hears the event first. That a run is to end is stored.
    #[test]
    fn event_signal_is_sent_by_the_node_that_has_the_program() {
        play(
            "00:00 there 1 2
            00:00 put j overlap allow
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 launched #1
                #1 00:01 running
            00:03 node 2.1
            00:03 event e1 two signal #1 SIGTERM
                unchanged
            00:03 node 1.1
            00:03 event e1 one signal #1 SIGTERM
                (signal #1 SIGTERM)
            00:04 node 2.1
            00:04 event e1 two signal #1 SIGTERM
                unchanged
            00:05 event e2 two signal #1 SIGKILL
                #1 00:01 running (killed)
            00:05 node 1.1
            00:05 event e2 one signal #1 SIGKILL
                unchanged",
        );
    }

    /// A run under one id is one run, with or without the lock.
    #[test]
    fn event_run_creates_one_run() {
        play(
            "00:00 there 1 2
            00:00 put j @every 10m; lock; overlap allow
                next 00:10, job r1
            00:01 event e1 one run j
                #1 00:01 starting, → #1
            00:01 node 2.1
            00:01 event e1 two run j
                unchanged",
        );
    }
}
