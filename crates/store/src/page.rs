//! Lists of records in pages. A page begins after a key and not at an offset, so that writes between two pages neither
//! repeat nor hide records that existed all the time.

use cronhold_core::record::{ActionId, PoolName, Record, RecordKey, ScheduleId, StoredRecord};
use cronhold_core::{Args, JobId, NodeId, RunId, RunNumber, State};
use cronhold_schedule::Instant;

use crate::UnreadableRecord;

/// Which records are listed, and in which order. `after` is the last key of the page before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// Jobs by id.
    Jobs { after: Option<JobId> },
    /// Job states by job.
    JobStates { after: Option<JobId> },
    /// Cursors by job and schedule.
    Cursors { after: Option<(JobId, ScheduleId)> },
    /// Backlogs by job and schedule.
    Backlogs { after: Option<(JobId, ScheduleId)> },
    /// Runs, the latest id first.
    Runs(RunQuery),
    /// Finished runs of a job in one state, the earliest id first, which is the order of deletion by retention.
    Oldest { job: JobId, state: State, after: Option<RunId> },
    /// Runs that are not finished, the earliest id first.
    Unfinished {
        /// Only runs that this node owns; `None` for all.
        node: Option<NodeId>,
        after: Option<RunId>,
    },
    /// The latest outcomes of jobs with certain args, by job; those of one job in any order.
    Identities { after: Option<(JobId, Args)> },
    /// The latest outcomes of one job with certain args, in any order.
    IdentitiesOf { job: JobId },
    /// Nodes by id.
    Nodes { after: Option<NodeId> },
    /// Actions that are neither done nor given up, by id.
    PendingActions { after: Option<ActionId> },
    /// Sets of triggers that have pending ones, by job.
    PendingTriggers { after: Option<JobId> },
    /// Pools that have active runs, by name.
    Pools { after: Option<PoolName> },
}

/// Which runs are listed, the latest id first. Run ids begin with the nominal time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunQuery {
    /// Only of this job.
    pub job: Option<JobId>,
    /// Only with this number. Each job has its own numbers; they restart if a job is removed and added again.
    pub number: Option<RunNumber>,
    /// Only in one of these states; in any state if empty.
    pub states: Vec<State>,
    /// Only runs that were unfinished at this time or later, whatever their nominal time: runs that ended at or after
    /// it, and all that have not ended.
    pub since: Option<Instant>,
    /// Only with an id below this: the last of the page before.
    pub before: Option<RunId>,
}

impl RunQuery {
    /// Whether a run or a span of skips that was active until this time, `None` if it has not ended, is recent enough.
    pub fn includes_end(&self, active_until: Option<Instant>) -> bool {
        let Some((since, until)) = self.since.zip(active_until) else { return true };
        until >= since
    }

    /// Whether a record is a run or a span of skips that is recent enough.
    pub fn includes_end_of(&self, record: &Record) -> bool {
        match record {
            Record::Run(run) => self.includes_end(run.active_until()),
            Record::SkipSpan(span) => self.includes_end(Some(span.active_until())),
            _ => false,
        }
    }
}

/// One page. It is the last one if it has fewer records than requested.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// Records in the order of the query.
    pub records: Vec<StoredRecord>,
    /// Records that belong to this page and cannot be read.
    pub unreadable: Vec<UnreadableRecord>,
    /// The last key of the page, whether its record can be read or not; `None` if no key of the page can be read.
    pub last: Option<RecordKey>,
}

impl Page {
    /// Appends a record.
    pub fn push(&mut self, stored: StoredRecord) {
        self.last = Some(stored.record.key());
        self.records.push(stored);
    }

    /// Appends a record that cannot be read.
    pub fn push_unreadable(&mut self, record: UnreadableRecord) {
        if record.key.is_some() {
            self.last.clone_from(&record.key);
        }
        self.unreadable.push(record);
    }

    /// How many records belong to the page.
    pub fn len(&self) -> usize {
        self.records.len() + self.unreadable.len()
    }

    /// Whether no record belongs to the page.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key after which the next page begins, if `limit` records were requested; `None` if this page is the last.
    pub fn next(&self, limit: usize) -> Option<RecordKey> {
        self.last.clone().filter(|_| self.len() >= limit)
    }
}
