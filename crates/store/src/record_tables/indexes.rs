//! Secondary indexes: due records, unfinished runs, pending actions and triggers, runs of a job.
//!
//! Invariant: an index contains exactly the records in the tables, under their current values.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::record::{ActionId, Record, RecordKey, Run, SkipSpan};
use cronhold_core::{JobId, NodeId, RunId, State};
use cronhold_schedule::Instant;

use crate::Obligation;

#[derive(Debug, Clone, Default)]
pub(super) struct TableIndexes {
    /// Records with a due time, ordered by it, without runs that a node owns.
    pub(super) due: BTreeSet<Obligation>,
    /// Unfinished runs of all jobs.
    pub(super) unfinished: BTreeSet<RunId>,
    /// Unfinished runs by the node that owns them.
    pub(super) owned: BTreeMap<NodeId, BTreeSet<RunId>>,
    /// Actions that are neither done nor given up.
    pub(super) pending_actions: BTreeSet<ActionId>,
    /// Jobs that have pending triggers.
    pub(super) pending_triggers: BTreeSet<JobId>,
    /// All runs and spans of skips.
    pub(super) runs: BTreeSet<RunId>,
    /// All runs and spans of skips of a job.
    pub(super) of_job: BTreeMap<JobId, BTreeSet<RunId>>,
    /// Finished runs of a job in one state. Spans are among the skipped ones.
    pub(super) ended: BTreeMap<(JobId, State), BTreeSet<RunId>>,
}

impl TableIndexes {
    /// Replaces the entries of a record; either record may be absent.
    pub(super) fn replace(&mut self, key: &RecordKey, old: Option<&Record>, new: Option<&Record>) {
        let (old_due, new_due) = (old.and_then(listed_due), new.and_then(listed_due));
        if old_due != new_due {
            old_due.map(|at| self.due.remove(&Obligation { at, key: key.clone() }));
            new_due.map(|at| self.due.insert(Obligation { at, key: key.clone() }));
        }
        match old {
            Some(Record::Run(old)) => self.remove_run(old),
            Some(Record::SkipSpan(old)) => self.remove_span(old),
            Some(Record::Action(old)) => drop(self.pending_actions.remove(&old.id)),
            Some(Record::Triggers(old)) => drop(self.pending_triggers.remove(&old.job)),
            _ => {}
        }
        match new {
            Some(Record::Run(new)) => self.insert_run(new),
            Some(Record::SkipSpan(new)) => self.insert_span(new),
            Some(Record::Action(new)) if new.is_pending() => drop(self.pending_actions.insert(new.id)),
            Some(Record::Triggers(new)) if new.due.is_some() => drop(self.pending_triggers.insert(new.job.clone())),
            _ => {}
        }
    }

    fn insert_span(&mut self, span: &SkipSpan) {
        self.runs.insert(span.id);
        self.of_job.entry(span.job.clone()).or_default().insert(span.id);
        self.ended.entry((span.job.clone(), State::Skipped)).or_default().insert(span.id);
    }

    fn remove_span(&mut self, span: &SkipSpan) {
        self.runs.remove(&span.id);
        remove(&mut self.of_job, &span.job, span.id);
        remove(&mut self.ended, &(span.job.clone(), State::Skipped), span.id);
    }

    fn insert_run(&mut self, run: &Run) {
        self.runs.insert(run.id);
        self.of_job.entry(run.job.clone()).or_default().insert(run.id);
        if run.state.is_finished() {
            self.ended.entry((run.job.clone(), run.state)).or_default().insert(run.id);
            return;
        }
        self.unfinished.insert(run.id);
        if let Some(owner) = run.owner {
            self.owned.entry(owner.node).or_default().insert(run.id);
        }
    }

    fn remove_run(&mut self, run: &Run) {
        self.runs.remove(&run.id);
        remove(&mut self.of_job, &run.job, run.id);
        if run.state.is_finished() {
            remove(&mut self.ended, &(run.job.clone(), run.state), run.id);
            return;
        }
        self.unfinished.remove(&run.id);
        if let Some(owner) = run.owner {
            remove(&mut self.owned, &owner.node, run.id);
        }
    }
}

/// When a record is due, unless it is a run that a node owns.
fn listed_due(record: &Record) -> Option<Instant> {
    match record {
        Record::Run(run) if run.owner.is_some() => None,
        record => record.due(),
    }
}

/// Removes a run from an index, and its set if that becomes empty.
fn remove<K: Ord>(index: &mut BTreeMap<K, BTreeSet<RunId>>, key: &K, run: RunId) {
    let is_empty = index.get_mut(key).is_some_and(|runs| {
        runs.remove(&run);
        runs.is_empty()
    });
    if is_empty {
        index.remove(key);
    }
}
