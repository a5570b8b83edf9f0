//! The records that an explanation is made of. The caller loads them. An explanation depends on nothing else, so a
//! page, the command line and a test get the same one.

use std::sync::Arc;

use cronhold_schedule::Instant;

use crate::ids::RunId;
use crate::record::{
    Backlog, Cursor, ForeignRun, JobRecord, JobState, LockState, NodeRecord, PauseState, Record, Run, SkipSpan,
    TriggerSet,
};
use crate::run::State;

/// The records of one job. The order of each list does not matter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KnownRecords {
    /// The job; `None` if it was removed or never existed.
    pub job: Option<Arc<JobRecord>>,
    /// Its runs as a set.
    pub state: Option<Arc<JobState>>,
    /// The pause of all jobs.
    pub pauses: Arc<PauseState>,
    /// The cursors of all its schedules.
    pub cursors: Vec<Arc<Cursor>>,
    /// The backlogs of all its schedules.
    pub backlogs: Vec<Arc<Backlog>>,
    /// Its runs, and runs of other jobs that hold a lock it waits for.
    ///
    /// A question about the present needs those that are not finished and the latest one. A question about the past
    /// needs all that are stored: a span can have begun long before the time that is asked about. Retention keeps them
    /// to a few thousand.
    pub runs: Vec<Arc<Run>>,
    /// Its spans of skips, listed along with the runs.
    pub spans: Vec<Arc<SkipSpan>>,
    /// Locks that its runs wait for.
    pub locks: Vec<Arc<LockState>>,
    /// The latest run of the job on a foreign node. Only needed where a foreign node holds a lock that a run waits for.
    pub foreign: Option<Arc<ForeignRun>>,
    /// Its pending triggers, and what was decided about them.
    pub triggers: Option<Arc<TriggerSet>>,
    /// All nodes; if empty, the explanation does not mention nodes.
    pub nodes: Vec<Arc<NodeRecord>>,
}

impl FromIterator<Record> for KnownRecords {
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Self {
        let mut known = Self::default();
        for record in records {
            match record {
                Record::Job(job) => known.job = Some(job),
                Record::JobState(state) => known.state = Some(state),
                Record::Pause(pauses) => known.pauses = pauses,
                Record::Cursor(cursor) => known.cursors.push(cursor),
                Record::Backlog(backlog) => known.backlogs.push(backlog),
                Record::Run(run) => known.runs.push(run),
                Record::SkipSpan(span) => known.spans.push(span),
                Record::Lock(lock) => known.locks.push(lock),
                Record::Node(node) => known.nodes.push(node),
                Record::Foreign(run) => known.foreign = Some(run),
                Record::Triggers(set) => known.triggers = Some(set),
                Record::Identity(_) | Record::Action(_) | Record::Pool(_) => {}
            }
        }
        known
    }
}

impl KnownRecords {
    /// A run by its id.
    pub(super) fn run(&self, id: RunId) -> Option<&Arc<Run>> {
        self.runs.iter().find(|run| run.id == id)
    }

    /// The current and the last pause of the job.
    pub(super) fn own_pauses(&self) -> Option<&PauseState> {
        self.state.as_ref().map(|state| &state.pauses)
    }

    /// Whether the job, or all jobs, are paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.pauses.is_paused() || self.own_pauses().is_some_and(PauseState::is_paused)
    }

    /// Occurrences before this time may have had a run that is no longer stored; `None` if every run that was ever
    /// created is still stored.
    pub(crate) fn kept_from(&self) -> Option<Instant> {
        let (job, state) = (self.job.as_ref()?, self.state.as_ref()?);
        let runs = self.runs.iter().filter(|run| run.job == job.id).count();
        let spans = self.spans.iter().filter(|span| span.job == job.id).count();
        let stored = (runs + spans) as u64;
        // Every run and span has a number, so fewer stored ones than numbers means that some may have been deleted.
        if stored >= state.next_number - 1 {
            return None;
        }
        let retain = &job.job.retain;
        let shares = [
            (State::Success, state.kept.success, retain.success),
            (State::Failure, state.kept.failure, retain.failure),
            (State::Error, state.kept.error, retain.error),
            (State::Skipped, state.kept.skipped, retain.skipped),
        ];
        let full = shares.iter().filter(|(_, kept, limit)| kept >= limit).map(|(share, _, limit)| match limit {
            0 => Instant::from_micros(i64::MAX),
            _ => self.oldest(job, *share).unwrap_or(Instant::EPOCH),
        });
        // After a mark, or after `retain` was raised, no share is full: any of them may have lost its oldest run.
        let any = shares.iter().filter_map(|(share, ..)| self.oldest(job, *share));
        full.max().or_else(|| any.max())
    }

    /// The nominal time of the oldest run of the job in a finished state. Spans count as skipped runs.
    fn oldest(&self, job: &JobRecord, state: State) -> Option<Instant> {
        let runs = self.runs.iter().filter(|run| run.job == job.id && run.state == state).map(|run| run.nominal);
        let spans = self.spans.iter().filter(|span| span.job == job.id && state == State::Skipped);
        runs.chain(spans.map(|span| span.nominal())).min()
    }
}
