//! The overlap policy: whether a run may start while other runs of its job are active or its lock is held.

use crate::ids::NodeId;
use crate::job::{NodeSelector, OverlapPolicy, QUEUE_LIMIT_DEFAULT};
use crate::run::Reason;

/// What blocks a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdmissionObstacles {
    /// Other runs of the job that have started and not ended, and retries that wait for their time.
    pub active: u32,
    /// Other waiting runs of the job that are before it in the queue.
    pub queued: u32,
    /// Whether another run holds the lock that it needs.
    pub lock_is_held: bool,
}

/// What happens to a run that is ready to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// The run starts.
    Start,
    /// The run waits and is checked again when another run ends.
    Wait,
    /// The run is skipped.
    Skip(Reason),
    /// Active runs are stopped and waiting ones skipped as `replaced`. The run waits and starts in the commit that sees
    /// the last of them finished.
    Replace,
}

/// Whether the overlap policy applies between two runs of a job with these targets. For a job with `nodes: each` it
/// applies only between runs of the same node. A run without a target, from before the job was changed to `nodes:
/// each`, overlaps with all.
pub fn can_overlap(nodes: &NodeSelector, one: Option<NodeId>, other: Option<NodeId>) -> bool {
    !nodes.is_each() || one == other || one.is_none() || other.is_none()
}

/// Decides whether a new run starts, waits, is skipped or replaces others.
pub fn admit(overlap: OverlapPolicy, blocked_by: AdmissionObstacles) -> Admission {
    let AdmissionObstacles { active, queued, lock_is_held } = blocked_by;
    match overlap {
        OverlapPolicy::Allow if lock_is_held => wait(queued, QUEUE_LIMIT_DEFAULT, Reason::Lock),
        OverlapPolicy::Allow => Admission::Start,
        OverlapPolicy::Skip if active > 0 => Admission::Skip(Reason::Overlap),
        OverlapPolicy::Skip if lock_is_held => Admission::Skip(Reason::Lock),
        OverlapPolicy::Skip => Admission::Start,
        OverlapPolicy::Queue { limit } if active > 0 || lock_is_held || queued > 0 => {
            wait(queued, limit, Reason::QueueFull)
        }
        OverlapPolicy::Queue { .. } => Admission::Start,
        OverlapPolicy::Replace if active > 0 || queued > 0 => Admission::Replace,
        // The holder is a run of another job, which this policy does not replace.
        OverlapPolicy::Replace if lock_is_held => Admission::Wait,
        OverlapPolicy::Replace => Admission::Start,
    }
}

/// Decides whether the first run of the queue starts or waits. A queued run is never skipped by this policy.
pub fn admit_first(overlap: OverlapPolicy, blocked_by: AdmissionObstacles) -> Admission {
    if blocked_by.lock_is_held || blocked_by.active > 0 && overlap != OverlapPolicy::Allow {
        return Admission::Wait;
    }
    Admission::Start
}

fn wait(queued: u32, limit: u32, reason: Reason) -> Admission {
    if queued < limit { Admission::Wait } else { Admission::Skip(reason) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_run_is_admitted_by_the_overlap_policy() {
        let queue = OverlapPolicy::Queue { limit: 2 };
        for (overlap, active, queued, lock_is_held, expected) in [
            (OverlapPolicy::Allow, 0, 0, false, "start"),
            (OverlapPolicy::Allow, 5, 5, false, "start"),
            (OverlapPolicy::Allow, 5, 0, true, "wait"),
            (OverlapPolicy::Allow, 5, 99, true, "wait"),
            (OverlapPolicy::Allow, 5, 100, true, "skip: lock"),
            (OverlapPolicy::Skip, 0, 0, false, "start"),
            (OverlapPolicy::Skip, 1, 0, false, "skip: overlap"),
            (OverlapPolicy::Skip, 1, 0, true, "skip: overlap"),
            (OverlapPolicy::Skip, 0, 0, true, "skip: lock"),
            (queue, 0, 0, false, "start"),
            (queue, 1, 0, false, "wait"),
            (queue, 0, 1, false, "wait"),
            (queue, 1, 1, false, "wait"),
            (queue, 1, 2, false, "skip: queue full"),
            (queue, 0, 0, true, "wait"),
            (queue, 0, 2, true, "skip: queue full"),
            (OverlapPolicy::Replace, 0, 0, false, "start"),
            (OverlapPolicy::Replace, 1, 0, false, "replace"),
            (OverlapPolicy::Replace, 1, 0, true, "replace"),
            (OverlapPolicy::Replace, 0, 1, false, "replace"),
            (OverlapPolicy::Replace, 0, 0, true, "wait"),
        ] {
            let admission = admit(overlap, AdmissionObstacles { active, queued, lock_is_held });
            assert_eq!(text(&admission), expected, "{overlap:?} {active} {queued} {lock_is_held}");
        }
    }

    #[test]
    fn first_queued_run_starts_or_waits() {
        for (overlap, active, lock_is_held, expected) in [
            (OverlapPolicy::Allow, 3, false, "start"),
            (OverlapPolicy::Allow, 0, true, "wait"),
            (OverlapPolicy::Queue { limit: 2 }, 1, false, "wait"),
            (OverlapPolicy::Queue { limit: 2 }, 0, false, "start"),
            (OverlapPolicy::Queue { limit: 0 }, 0, true, "wait"),
            (OverlapPolicy::Replace, 1, true, "wait"),
            (OverlapPolicy::Replace, 0, false, "start"),
        ] {
            let admission = admit_first(overlap, AdmissionObstacles { active, queued: 0, lock_is_held });
            assert_eq!(text(&admission), expected, "{overlap:?} {active} {lock_is_held}");
        }
    }

    fn text(admission: &Admission) -> String {
        match admission {
            Admission::Start => "start".to_owned(),
            Admission::Wait => "wait".to_owned(),
            Admission::Skip(reason) => format!("skip: {reason}"),
            Admission::Replace => "replace".to_owned(),
        }
    }
}
