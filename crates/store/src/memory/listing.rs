//! Lists: pages of records, and due records. All are read from an ordered table or an index, starting where the
//! previous page ended.

use std::collections::BTreeSet;
use std::ops::Bound;

use cronhold_core::record::{Record, RecordKey, RecordKind, StoredRecord};
use cronhold_core::{Args, JobId, RunId, RunNumber, State};
use cronhold_schedule::Instant;

use super::state::MemoryState;
use crate::{Obligation, Page, Query, RunQuery};

impl MemoryState {
    /// Records that are due at or before `until`.
    pub(super) fn due(&self, after: Option<&Obligation>, until: Instant, limit: usize) -> Vec<Obligation> {
        let due = self.indexes.due.range((above(after), Bound::Unbounded));
        due.take_while(|obligation| obligation.at <= until).take(limit).cloned().collect()
    }

    /// A page of a list.
    pub(super) fn page(&self, query: &Query, limit: usize) -> Page {
        let records = match query {
            Query::Jobs { after } => self.after(RecordKind::Job, after.clone().map(RecordKey::Job).as_ref(), limit),
            Query::JobStates { after } => {
                self.after(RecordKind::JobState, after.clone().map(RecordKey::JobState).as_ref(), limit)
            }
            Query::Cursors { after } => {
                let after = after.clone().map(|(job, schedule)| RecordKey::Cursor(job, schedule));
                self.after(RecordKind::Cursor, after.as_ref(), limit)
            }
            Query::Backlogs { after } => {
                let after = after.clone().map(|(job, schedule)| RecordKey::Backlog(job, schedule));
                self.after(RecordKind::Backlog, after.as_ref(), limit)
            }
            Query::Identities { after } => {
                let after = after.clone().map(|(job, args)| RecordKey::Identity(job, args));
                self.after(RecordKind::Identity, after.as_ref(), limit)
            }
            Query::IdentitiesOf { job } => {
                let of_job = |stored: &&StoredRecord| stored.record.key().job() == Some(job);
                let first = RecordKey::Identity(job.clone(), Args::new());
                let rest = self.table(RecordKind::Identity).range(first..).map(|(_, stored)| stored);
                rest.take_while(of_job).take(limit).cloned().collect()
            }
            Query::Nodes { after } => self.after(RecordKind::Node, after.map(RecordKey::Node).as_ref(), limit),
            Query::Pools { after } => self.after(RecordKind::Pool, after.clone().map(RecordKey::Pool).as_ref(), limit),
            Query::PendingTriggers { after } => {
                let pending =
                    self.indexes.pending_triggers.range::<JobId, _>((above(after.as_ref()), Bound::Unbounded));
                let table = self.table(RecordKind::Triggers);
                let stored = pending.filter_map(|job| table.get(&RecordKey::Triggers(job.clone())));
                stored.take(limit).cloned().collect()
            }
            Query::PendingActions { after } => {
                let pending = self.indexes.pending_actions.range((above(after.as_ref()), Bound::Unbounded));
                let stored = pending.filter_map(|id| self.table(RecordKind::Action).get(&RecordKey::Action(*id)));
                stored.take(limit).cloned().collect()
            }
            Query::Runs(query) => self.runs(query, limit),
            Query::Oldest { job, state, after } => {
                self.earliest(self.indexes.ended.get(&(job.clone(), *state)), *after, limit)
            }
            Query::Unfinished { node: None, after } => self.earliest(Some(&self.indexes.unfinished), *after, limit),
            Query::Unfinished { node: Some(node), after } => self.earliest(self.indexes.owned.get(node), *after, limit),
        };
        let mut page = Page::default();
        records.into_iter().for_each(|stored| page.push(stored));
        page
    }

    fn after(&self, kind: RecordKind, after: Option<&RecordKey>, limit: usize) -> Vec<StoredRecord> {
        let rest = self.table(kind).range((above(after), Bound::Unbounded));
        rest.map(|(_, stored)| stored.clone()).take(limit).collect()
    }

    fn earliest(&self, runs: Option<&BTreeSet<RunId>>, after: Option<RunId>, limit: usize) -> Vec<StoredRecord> {
        let rest = runs.into_iter().flat_map(|runs| runs.range((above(after.as_ref()), Bound::Unbounded)));
        rest.filter_map(|run| self.run(*run)).take(limit).cloned().collect()
    }

    fn runs(&self, query: &RunQuery, limit: usize) -> Vec<StoredRecord> {
        let RunQuery { job, number, states, before, .. } = query;
        let matches = |state: State, own_number: RunNumber| {
            (states.is_empty() || states.contains(&state)) && number.is_none_or(|number| own_number == number)
        };
        let wanted = |stored: &&StoredRecord| {
            query.includes_end_of(&stored.record)
                && match &stored.record {
                    Record::Run(run) => matches(run.state, run.number),
                    Record::SkipSpan(span) => matches(State::Skipped, span.number),
                    _ => false,
                }
        };
        let below = before.map_or(Bound::Unbounded, Bound::Excluded);
        let ids = match job {
            Some(job) => self.indexes.of_job.get(job),
            None => Some(&self.indexes.runs),
        };
        let ids = ids.into_iter().flat_map(|runs: &BTreeSet<RunId>| runs.range((Bound::Unbounded, below)).rev());
        ids.filter_map(|id| self.run(*id)).filter(wanted).take(limit).cloned().collect()
    }

    /// A run or a span of skips.
    fn run(&self, id: RunId) -> Option<&StoredRecord> {
        let run = self.table(RecordKind::Run).get(&RecordKey::Run(id));
        run.or_else(|| self.table(RecordKind::SkipSpan).get(&RecordKey::SkipSpan(id)))
    }
}

fn above<T>(after: Option<&T>) -> Bound<&T> {
    after.map_or(Bound::Unbounded, Bound::Excluded)
}
