//! The records of one schedule, ordered by time. `why` looks up one occurrence in it, `holes` compares all of them.

use std::sync::Arc;

use cronhold_schedule::Instant;

use super::KnownRecords;
use crate::record::{Backlog, JobRecord, Run, ScheduleId, SkipSpan};

/// The records of one schedule of a job.
#[derive(Debug)]
pub(crate) struct Ledger<'a> {
    /// Runs, by nominal time, then by node, then by number.
    runs: Vec<&'a Arc<Run>>,
    spans: Vec<&'a Arc<SkipSpan>>,
    backlog: Option<&'a Arc<Backlog>>,
}

/// The records of an occurrence in a ledger.
#[derive(Debug)]
pub(crate) enum LedgerEntry<'a> {
    /// It became a run: all attempts in order. For a job with `nodes: each` they are ordered by node first.
    Runs(Vec<&'a Arc<Run>>),
    /// It was skipped together with others.
    Span(&'a Arc<SkipSpan>),
    /// It is still to be caught up.
    Backlog(&'a Arc<Backlog>),
}

/// A range of time in which every occurrence has a record, both ends included.
pub(crate) type CoveredRange = (Instant, Instant);

impl<'a> Ledger<'a> {
    /// The records of a schedule.
    pub(crate) fn of(job: &JobRecord, schedule: &ScheduleId, known: &'a KnownRecords) -> Self {
        let own = known.runs.iter().filter(|run| run.job == job.id && run.schedule.as_ref() == Some(schedule));
        let mut runs: Vec<_> = own.collect();
        runs.sort_by_key(|run| (run.nominal, run.target, run.number));
        let spans = known.spans.iter().filter(|span| span.job == job.id && span.schedule == *schedule).collect();
        let backlog = known.backlogs.iter().find(|backlog| backlog.job == job.id && backlog.schedule == *schedule);
        Self { runs, spans, backlog }
    }

    /// The records of an occurrence; `None` if there are none.
    pub(crate) fn entry(&self, nominal: Instant) -> Option<LedgerEntry<'a>> {
        let first = self.runs.partition_point(|run| run.nominal < nominal);
        let attempts: Vec<_> = self.runs[first..].iter().copied().take_while(|run| run.nominal == nominal).collect();
        if !attempts.is_empty() {
            return Some(LedgerEntry::Runs(attempts));
        }
        if let Some(span) = self.spans.iter().find(|span| span.covers(nominal)) {
            return Some(LedgerEntry::Span(span));
        }
        self.backlog.filter(|backlog| backlog.holds(nominal)).map(LedgerEntry::Backlog)
    }

    /// All ranges with records, sorted by their start. Ranges may overlap.
    pub(crate) fn covered(&self) -> Vec<CoveredRange> {
        let runs = self.runs.iter().map(|run| (run.nominal, run.nominal));
        let spans = self.spans.iter().map(|span| (span.range.from, span.range.to));
        let backlog = self.backlog.iter().flat_map(|backlog| backlog.rest()).map(|rest| (rest.from, rest.to));
        let mut covered: Vec<CoveredRange> = runs.chain(spans).chain(backlog).collect();
        covered.sort_unstable();
        covered
    }
}
