//! Carries out an event that every node receives, such as one that a foreign system has sent to all nodes. The first node
//! carries out the command and takes a lock in the same unit. A node that finds the lock held by another one does nothing.
//!
//! The lock is named after the event and its position among equal ones, so an equal event that comes later has another
//! lock. It is never renewed, and expires long after every node has received the event or must not act on it any more.
//! A command without an effect takes the lock too: it may have one when a slow node comes to it, after later events.

use crate::command::Command;
use crate::decision::{CommandReply, DecidedUnit, LockTake, Rejection};
use crate::ids::RunId;
use crate::record::LockName;
use crate::view::{DecisionView, Halt};

pub(super) fn decide(
    view: &DecisionView<'_>,
    once: &LockName,
    holder: RunId,
    command: &Command,
) -> Result<DecidedUnit, Halt> {
    if view.lock(once).is_some_and(|held| held.holder != holder) {
        return Ok(unchanged());
    }
    let mut done = match super::dispatch(view, command) {
        // The node that runs the program has received the event too.
        Err(Halt::Reject(Rejection::RunsElsewhere(_))) => return Ok(unchanged()),
        decided => decided?,
    };
    done.take.push(LockTake { lock: once.clone(), holder, ttl: Some(LockName::EVENT_TTL) });
    Ok(done)
}

fn unchanged() -> DecidedUnit {
    DecidedUnit { answer: CommandReply::Unchanged, ..DecidedUnit::default() }
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    /// The words after `event` are its digest and the node that has received it.
    #[test]
    fn event_is_carried_out_by_the_first_node() {
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

    /// A slow node must not carry out an event that had no effect before later events.
    #[test]
    fn event_without_effect_is_handled_too() {
        play(
            "00:00 there 1 2
            00:00 put j @every 10m
                next 00:10, job r1
            00:01 event e1 one put j @every 10m
                unchanged
            00:01 node 2.1
            00:01 event e1 two put j @every 20m
                unchanged
            00:01 event e2 two put j @every 20m
                next 00:20, gone, job r2",
        );
    }

    /// Only the node that runs the program can send it a signal. The request to kill a run is stored by any node.
    #[test]
    fn signal_is_sent_by_the_node_that_runs_the_program() {
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

    #[test]
    fn event_starts_one_run_on_two_nodes() {
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
