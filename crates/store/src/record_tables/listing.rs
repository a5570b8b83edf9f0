//! Lists: pages of records, and due records. All are read from an ordered table or an index, starting where the
//! previous page ended.

use std::collections::BTreeSet;
use std::ops::Bound;

use cronhold_core::record::{Record, RecordKey, RecordKind};
use cronhold_core::{Args, JobId, RunId, RunNumber, State};
use cronhold_schedule::Instant;

use super::{RecordEntry, RecordTables};
use crate::key_names::{key_field, parse_key};
use crate::{Obligation, Page, Query, RunQuery, WalkPage, WalkPlace};

impl RecordTables {
    /// Records that are due at or before `until`.
    pub fn due(&self, after: Option<&Obligation>, until: Instant, limit: usize) -> Vec<Obligation> {
        let due = self.indexes.due.range((above(after), Bound::Unbounded));
        due.take_while(|obligation| obligation.at <= until).take(limit).cloned().collect()
    }

    /// A page of a list.
    pub fn page(&self, query: &Query, limit: usize) -> Page {
        let entries = match query {
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
                let first = RecordKey::Identity(job.clone(), Args::new());
                let rest = self.table(RecordKind::Identity).range(first..);
                let of_job = rest.take_while(|(key, _)| key.job() == Some(job));
                of_job.map(|(_, entry)| entry).take(limit).collect()
            }
            Query::Nodes { after } => self.after(RecordKind::Node, after.map(RecordKey::Node).as_ref(), limit),
            Query::Pools { after } => self.after(RecordKind::Pool, after.clone().map(RecordKey::Pool).as_ref(), limit),
            Query::PendingTriggers { after } => {
                let pending =
                    self.indexes.pending_triggers.range::<JobId, _>((above(after.as_ref()), Bound::Unbounded));
                let table = self.table(RecordKind::Triggers);
                let entries = pending.filter_map(|job| table.get(&RecordKey::Triggers(job.clone())));
                entries.take(limit).collect()
            }
            Query::PendingActions { after } => {
                let pending = self.indexes.pending_actions.range((above(after.as_ref()), Bound::Unbounded));
                let entries = pending.filter_map(|id| self.table(RecordKind::Action).get(&RecordKey::Action(*id)));
                entries.take(limit).collect()
            }
            Query::Runs(query) => self.runs(query, limit),
            Query::Oldest { job, state, after } => {
                self.earliest(self.indexes.ended.get(&(job.clone(), *state)), *after, limit)
            }
            Query::Unfinished { node: None, after } => self.earliest(Some(&self.indexes.unfinished), *after, limit),
            Query::Unfinished { node: Some(node), after } => self.earliest(self.indexes.owned.get(node), *after, limit),
        };
        let mut page = Page::default();
        entries.into_iter().for_each(|entry| entry.add_to(&mut page));
        page
    }

    /// A part of a walk through all records of a kind, ordered by key. A place is the field of the last key.
    pub fn walk(&self, kind: RecordKind, from: Option<&WalkPlace>, limit: usize) -> WalkPage {
        let after = from.and_then(|place| parse_key(kind, std::str::from_utf8(&place.0).ok()?));
        let limit = limit.max(1);
        let mut page = Page::default();
        self.after(kind, after.as_ref(), limit).into_iter().for_each(|entry| entry.add_to(&mut page));
        let next = page.next(limit).map(|key| WalkPlace(key_field(&key).into_bytes()));
        WalkPage { records: page.records, unreadable: page.unreadable, next }
    }

    fn after(&self, kind: RecordKind, after: Option<&RecordKey>, limit: usize) -> Vec<&RecordEntry> {
        let rest = self.table(kind).range((above(after), Bound::Unbounded));
        rest.map(|(_, entry)| entry).take(limit).collect()
    }

    fn earliest(&self, runs: Option<&BTreeSet<RunId>>, after: Option<RunId>, limit: usize) -> Vec<&RecordEntry> {
        let rest = runs.into_iter().flat_map(|runs| runs.range((above(after.as_ref()), Bound::Unbounded)));
        rest.filter_map(|run| self.run(*run)).take(limit).collect()
    }

    fn runs(&self, query: &RunQuery, limit: usize) -> Vec<&RecordEntry> {
        let RunQuery { job, number, states, before, .. } = query;
        let matches = |state: State, own_number: RunNumber| {
            (states.is_empty() || states.contains(&state)) && number.is_none_or(|number| own_number == number)
        };
        let wanted = |entry: &&RecordEntry| {
            let Some(record) = entry.listed_as() else { return false };
            query.includes_end_of(record)
                && match record {
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
        ids.filter_map(|id| self.run(*id)).filter(wanted).take(limit).collect()
    }

    /// A run or a span of skips.
    fn run(&self, id: RunId) -> Option<&RecordEntry> {
        let run = self.table(RecordKind::Run).get(&RecordKey::Run(id));
        run.or_else(|| self.table(RecordKind::SkipSpan).get(&RecordKey::SkipSpan(id)))
    }
}

fn above<T>(after: Option<&T>) -> Bound<&T> {
    after.map_or(Bound::Unbounded, Bound::Excluded)
}
