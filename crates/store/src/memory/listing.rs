//! Answers that are lists: pages of records, and what is due. All come from an ordered table or an index, from where
//! the page before ended.

use std::collections::BTreeSet;
use std::ops::Bound;

use cronhold_core::RunId;
use cronhold_core::record::{Key, Kind, Record, Stored};
use cronhold_schedule::Instant;

use super::state::MemoryState;
use crate::{Obligation, Page, Query, RunQuery};

impl MemoryState {
    /// Records whose due is not after `until`.
    pub(super) fn due(&self, after: Option<&Obligation>, until: Instant, limit: usize) -> Vec<Obligation> {
        let due = self.indexes.due.range((above(after), Bound::Unbounded));
        due.take_while(|obligation| obligation.at <= until).take(limit).cloned().collect()
    }

    /// A page of a list.
    pub(super) fn page(&self, query: &Query, limit: usize) -> Page {
        let records = match query {
            Query::Jobs { after } => self.after(Kind::Job, after.clone().map(Key::Job).as_ref(), limit),
            Query::JobStates { after } => self.after(Kind::JobState, after.clone().map(Key::JobState).as_ref(), limit),
            Query::Cursors { after } => {
                let after = after.clone().map(|(job, schedule)| Key::Cursor(job, schedule));
                self.after(Kind::Cursor, after.as_ref(), limit)
            }
            Query::Backlogs { after } => {
                let after = after.clone().map(|(job, schedule)| Key::Backlog(job, schedule));
                self.after(Kind::Backlog, after.as_ref(), limit)
            }
            Query::Nodes { after } => self.after(Kind::Node, after.map(Key::Node).as_ref(), limit),
            Query::Runs(query) => self.runs(query, limit),
            Query::Oldest { job, state, after } => {
                self.earliest(self.indexes.ended.get(&(job.clone(), *state)), *after, limit)
            }
            Query::Unfinished { node: None, after } => self.earliest(Some(&self.indexes.unfinished), *after, limit),
            Query::Unfinished { node: Some(node), after } => self.earliest(self.indexes.owned.get(node), *after, limit),
        };
        Page { records, unreadable: Vec::new() }
    }

    fn after(&self, kind: Kind, after: Option<&Key>, limit: usize) -> Vec<Stored> {
        let rest = self.table(kind).range((above(after), Bound::Unbounded));
        rest.map(|(_, stored)| stored.clone()).take(limit).collect()
    }

    fn earliest(&self, runs: Option<&BTreeSet<RunId>>, after: Option<RunId>, limit: usize) -> Vec<Stored> {
        let rest = runs.into_iter().flat_map(|runs| runs.range((above(after.as_ref()), Bound::Unbounded)));
        rest.filter_map(|run| self.run(*run)).take(limit).cloned().collect()
    }

    fn runs(&self, query: &RunQuery, limit: usize) -> Vec<Stored> {
        let RunQuery { job, number, states, since, before } = query;
        let wanted = |stored: &&Stored| match &stored.record {
            Record::Run(run) => {
                (states.is_empty() || states.contains(&run.state))
                    && since.is_none_or(|since| run.nominal >= since)
                    && number.is_none_or(|number| run.number == number)
            }
            _ => false,
        };
        let below = before.map_or(Bound::Unbounded, Bound::Excluded);
        match job {
            Some(job) => {
                let of_job = self.indexes.of_job.get(job).into_iter();
                let ids = of_job.flat_map(|runs: &BTreeSet<RunId>| runs.range((Bound::Unbounded, below)).rev());
                ids.filter_map(|id| self.run(*id)).filter(wanted).take(limit).cloned().collect()
            }
            None => {
                let all = self.table(Kind::Run).range((Bound::Unbounded, below.map(Key::Run)));
                all.rev().map(|(_, stored)| stored).filter(wanted).take(limit).cloned().collect()
            }
        }
    }

    fn run(&self, id: RunId) -> Option<&Stored> {
        self.table(Kind::Run).get(&Key::Run(id))
    }
}

fn above<T>(after: Option<&T>) -> Bound<&T> {
    after.map_or(Bound::Unbounded, Bound::Excluded)
}
