//! Wrong answers: records that look otherwise than they are stored. Their versions are right, so that what follows from
//! a wrong answer is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::Job;
use cronhold_core::NodeId;
use cronhold_core::job::{CatchUpPolicy, CatchUpRule, NodeSelector, OverlapPolicy};
use cronhold_core::record::{JobRecord, JobState, NodeRecord, PauseState, Record, StoredRecord};
use cronhold_schedule::{Instant, Span};

use super::DeliberateBug;

/// Longer than any simulation.
const ALWAYS: Span = Span::from_secs(30 * 86_400);

/// When nodes were first heard of, for those who do not see that they are heard of again.
pub(super) type FirstBeats = BTreeMap<NodeId, (u32, Instant)>;

/// A record as somebody who makes this mistake sees it, on this node.
pub(super) fn seen(
    how: DeliberateBug,
    me: NodeId,
    beats: &mut FirstBeats,
    stored: Option<StoredRecord>,
) -> Option<StoredRecord> {
    let StoredRecord { version, record } = stored?;
    let record = match (how, record) {
        (DeliberateBug::Grabby, Record::Lock(_)) => return None,
        (DeliberateBug::Restless, Record::Pause(_)) => Record::Pause(Arc::default()),
        (DeliberateBug::Restless, Record::JobState(state)) => {
            let pauses = PauseState { current: None, ..state.pauses.clone() };
            Record::JobState(Arc::new(JobState { pauses, ..(*state).clone() }))
        }
        (DeliberateBug::Miscounting, Record::JobState(state)) => {
            let next_number = state.next_number.saturating_sub(1).max(1);
            Record::JobState(Arc::new(JobState { next_number, ..(*state).clone() }))
        }
        (_, Record::Job(job)) => Record::Job(of_job(how, job)),
        (_, Record::Node(node)) => Record::Node(of_node(how, me, beats, node)),
        (_, record) => record,
    };
    Some(StoredRecord { version, record })
}

fn of_job(how: DeliberateBug, record: Arc<JobRecord>) -> Arc<JobRecord> {
    let mut job: Job = (*record.job).clone();
    match how {
        DeliberateBug::Eager => job.catch_up = CatchUpRule { policy: CatchUpPolicy::All, within: ALWAYS },
        DeliberateBug::Crowded => job.overlap = OverlapPolicy::Allow,
        DeliberateBug::Anywhere => {
            job.nodes = match job.nodes {
                NodeSelector::Each(_) => NodeSelector::Each(BTreeSet::new()),
                _ => NodeSelector::Any,
            }
        }
        _ => return record,
    }
    let mut record = (*record).clone();
    record.job = Arc::new(job);
    Arc::new(record)
}

fn of_node(how: DeliberateBug, me: NodeId, beats: &mut FirstBeats, record: Arc<NodeRecord>) -> Arc<NodeRecord> {
    let mut node = (*record).clone();
    match how {
        DeliberateBug::Undrained => node.draining = false,
        DeliberateBug::Lonely if node.id != me => node.draining = true,
        DeliberateBug::Deaf if node.id != me => {
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
