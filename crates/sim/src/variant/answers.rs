//! Wrong answers: records that look otherwise than they are stored. Their versions are right, so that what follows from
//! a wrong answer is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::Job;
use cronhold_core::NodeId;
use cronhold_core::job::{CatchUp, CatchUpPolicy, Nodes, Overlap};
use cronhold_core::record::{JobRecord, JobState, Node, Pauses, Record, Stored};
use cronhold_schedule::{Instant, Span};

use super::Variant;

/// Longer than any simulation.
const ALWAYS: Span = Span::from_secs(30 * 86_400);

/// When nodes were first heard of, for those who do not see that they are heard of again.
pub(super) type FirstBeats = BTreeMap<NodeId, (u32, Instant)>;

/// A record as somebody who makes this mistake sees it, on this node.
pub(super) fn seen(how: Variant, me: NodeId, beats: &mut FirstBeats, stored: Option<Stored>) -> Option<Stored> {
    let Stored { version, record } = stored?;
    let record = match (how, record) {
        (Variant::Grabby, Record::Lock(_)) => return None,
        (Variant::Restless, Record::Pause(_)) => Record::Pause(Arc::default()),
        (Variant::Restless, Record::JobState(state)) => {
            let pauses = Pauses { current: None, ..state.pauses.clone() };
            Record::JobState(Arc::new(JobState { pauses, ..(*state).clone() }))
        }
        (Variant::Miscounting, Record::JobState(state)) => {
            let next_number = state.next_number.saturating_sub(1).max(1);
            Record::JobState(Arc::new(JobState { next_number, ..(*state).clone() }))
        }
        (_, Record::Job(job)) => Record::Job(of_job(how, job)),
        (_, Record::Node(node)) => Record::Node(of_node(how, me, beats, node)),
        (_, record) => record,
    };
    Some(Stored { version, record })
}

fn of_job(how: Variant, record: Arc<JobRecord>) -> Arc<JobRecord> {
    let mut job: Job = (*record.job).clone();
    match how {
        Variant::Eager => job.catch_up = CatchUp { policy: CatchUpPolicy::All, within: ALWAYS },
        Variant::Crowded => job.overlap = Overlap::Allow,
        Variant::Anywhere => {
            job.nodes = match job.nodes {
                Nodes::Each(_) => Nodes::Each(BTreeSet::new()),
                _ => Nodes::Any,
            }
        }
        _ => return record,
    }
    let mut record = (*record).clone();
    record.job = Arc::new(job);
    Arc::new(record)
}

fn of_node(how: Variant, me: NodeId, beats: &mut FirstBeats, record: Arc<Node>) -> Arc<Node> {
    let mut node = (*record).clone();
    match how {
        Variant::Undrained => node.draining = false,
        Variant::Lonely if node.id != me => node.draining = true,
        Variant::Deaf if node.id != me => {
            let (incarnation, beat) = beats.entry(node.id).or_insert((node.incarnation, node.beat));
            if *incarnation != node.incarnation {
                (*incarnation, *beat) = (node.incarnation, node.beat);
            }
            node.beat = *beat;
        }
        _ => return record,
    }
    Arc::new(node)
}
