//! Lists of records, a page at a time. A page begins after a key and not at a position, so that writes between two
//! pages neither repeat nor hide what was there all the time.

use cronhold_core::record::{Key, ScheduleId, Stored};
use cronhold_core::{JobId, NodeId, RunId, RunNumber, State};
use cronhold_schedule::Instant;

/// What is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// Jobs by id.
    Jobs {
        /// After this one.
        after: Option<JobId>,
    },
    /// Sets of runs by job.
    JobStates {
        /// After this one.
        after: Option<JobId>,
    },
    /// Cursors by job and schedule.
    Cursors {
        /// After this one.
        after: Option<(JobId, ScheduleId)>,
    },
    /// Backlogs by job and schedule.
    Backlogs {
        /// After this one.
        after: Option<(JobId, ScheduleId)>,
    },
    /// Runs, the latest id first.
    Runs(RunQuery),
    /// Finished runs of a job in one state, the earliest id first: those that go first when too many are kept.
    Oldest {
        /// Of which job.
        job: JobId,
        /// In which state.
        state: State,
        /// After this one.
        after: Option<RunId>,
    },
    /// Runs that are not finished, the earliest id first.
    Unfinished {
        /// Only those that this node owns; all, when absent.
        node: Option<NodeId>,
        /// After this one.
        after: Option<RunId>,
    },
    /// Nodes by id.
    Nodes {
        /// After this one.
        after: Option<NodeId>,
    },
}

/// Which runs are listed, the latest id first. Ids begin with the nominal time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunQuery {
    /// Only of this job.
    pub job: Option<JobId>,
    /// Only with this number. Jobs count by themselves, and one that was removed and made again begins anew.
    pub number: Option<RunNumber>,
    /// Only in one of these states; in any, when empty.
    pub states: Vec<State>,
    /// Only with a nominal time at or after this.
    pub since: Option<Instant>,
    /// Only with an id below this: the last of the page before.
    pub before: Option<RunId>,
}

/// One page. When it has fewer records than were asked for, there are no more.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// Records in the order of the query.
    pub records: Vec<Stored>,
    /// What is wrong with records that belong here and cannot be read.
    pub unreadable: Vec<String>,
}

impl Page {
    /// The key that the next page begins after, when so many records were asked for; none, when this was the last.
    pub fn next(&self, limit: usize) -> Option<Key> {
        let count = self.records.len() + self.unreadable.len();
        self.records.last().filter(|_| count >= limit).map(|stored| stored.record.key())
    }
}
