//! Wrong replies: records that differ from what is stored. Their versions are correct, so that the store accepts
//! decisions based on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::Job;
use cronhold_core::NodeId;
use cronhold_core::job::{CatchUpPolicy, CatchUpRule, NodeSelector, OverlapPolicy};
use cronhold_core::record::{ClaimedRanges, Cursor, JobRecord, JobState, NodeRecord, PauseState, Record, StoredRecord};
use cronhold_schedule::{Instant, Span};

use super::DeliberateBug;

/// Longer than any simulation.
const ALWAYS: Span = Span::from_secs(30 * 86_400);

/// The first heartbeat of each incarnation of a node, which replaces the later ones.
pub(super) type FirstBeats = BTreeMap<NodeId, (u32, Instant)>;

/// The record as a node with this bug sees it.
pub(super) fn falsify(
    bug: DeliberateBug,
    me: NodeId,
    beats: &mut FirstBeats,
    stored: Option<StoredRecord>,
) -> Option<StoredRecord> {
    let StoredRecord { version, record } = stored?;
    let record = match (bug, record) {
        (DeliberateBug::StolenLocks, Record::Lock(_)) => return None,
        (DeliberateBug::IgnoredPauses, Record::Pause(_)) => Record::Pause(Arc::default()),
        (DeliberateBug::IgnoredPauses, Record::JobState(state)) => {
            let pauses = PauseState { current: None, ..state.pauses.clone() };
            Record::JobState(Arc::new(JobState { pauses, ..(*state).clone() }))
        }
        (DeliberateBug::DuplicateNumbers, Record::JobState(state)) => {
            let next_number = state.next_number.saturating_sub(1).max(1);
            Record::JobState(Arc::new(JobState { next_number, ..(*state).clone() }))
        }
        (DeliberateBug::ForgottenClaims, Record::Cursor(cursor)) => {
            Record::Cursor(Arc::new(Cursor { claimed: ClaimedRanges::default(), ..(*cursor).clone() }))
        }
        (_, Record::Job(job)) => Record::Job(of_job(bug, job)),
        (_, Record::Node(node)) => Record::Node(of_node(bug, me, beats, node)),
        (_, record) => record,
    };
    Some(StoredRecord { version, record })
}

fn of_job(bug: DeliberateBug, record: Arc<JobRecord>) -> Arc<JobRecord> {
    let mut job: Job = (*record.job).clone();
    match bug {
        DeliberateBug::UnlimitedCatchUp => job.catch_up = CatchUpRule { policy: CatchUpPolicy::All, within: ALWAYS },
        DeliberateBug::UnlimitedOverlap => job.overlap = OverlapPolicy::Allow,
        DeliberateBug::IgnoredLabels => {
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

fn of_node(bug: DeliberateBug, me: NodeId, beats: &mut FirstBeats, record: Arc<NodeRecord>) -> Arc<NodeRecord> {
    let mut node = (*record).clone();
    match bug {
        DeliberateBug::IgnoredDrains => node.draining = false,
        DeliberateBug::OthersDrain if node.id != me => node.draining = true,
        DeliberateBug::IgnoredHeartbeats if node.id != me => {
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
