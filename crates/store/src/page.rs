//! Lists of records in pages. A page begins after a key and not at an offset, so that writes between two pages neither
//! repeat nor hide records that existed all the time.

use cronhold_core::record::{RecordKey, ScheduleId, StoredRecord};
use cronhold_core::{JobId, NodeId, RunId, RunNumber, State};
use cronhold_schedule::Instant;

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
    /// Nodes by id.
    Nodes { after: Option<NodeId> },
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
    /// Only with a nominal time at or after this.
    pub since: Option<Instant>,
    /// Only with an id below this: the last of the page before.
    pub before: Option<RunId>,
}

/// One page. It is the last one if it has fewer records than requested.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// Records in the order of the query.
    pub records: Vec<StoredRecord>,
    /// The errors of records that belong to this page and cannot be read.
    pub unreadable: Vec<String>,
}

impl Page {
    /// The key after which the next page begins, if `limit` records were requested; `None` if this page is the last.
    pub fn next(&self, limit: usize) -> Option<RecordKey> {
        let count = self.records.len() + self.unreadable.len();
        self.records.last().filter(|_| count >= limit).map(|stored| stored.record.key())
    }
}
