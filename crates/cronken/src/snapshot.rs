//! Loads shared definitions and the records of their jobs. Definitions are read first: a later change is newer in the
//! records, and an update of a definition compares its text.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::record::{JobRecord, LockName, Record, RecordKey};
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Instant;
use cronhold_store::{
    DefinitionStatus, Fault, Query, ReadableRecords, SharedDefinition, SharedStore, Store, UnreadableRecord,
    load_readable,
};

/// Records that one request to the store reads.
const PAGE: usize = 1_000;

/// Which jobs are reconciled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobScope {
    All,
    /// Only these jobs.
    Only(BTreeSet<JobId>),
}

/// Shared definitions and the records of their jobs.
#[derive(Debug, Default)]
pub(crate) struct ReconcileSnapshot {
    /// Definitions by job. A job without a definition has an entry without a text.
    pub(crate) definitions: BTreeMap<JobId, SharedDefinition>,
    /// Names that cannot be a job's id, with the reason.
    pub(crate) invalid_names: Vec<(String, String)>,
    /// Jobs of this store.
    pub(crate) jobs: BTreeMap<JobId, Arc<JobRecord>>,
    /// Jobs that are paused by themselves.
    pub(crate) paused: BTreeSet<JobId>,
    /// Whether everything is paused.
    pub(crate) all_paused: bool,
    /// Jobs that a `remove` event has removed. They stay removed until a `reload` event, even if their definitions change.
    pub(crate) removed: BTreeSet<JobId>,
}

impl ReconcileSnapshot {
    /// Loads the definitions and records of these jobs.
    pub(crate) async fn load(store: &dyn Store, shared: &dyn SharedStore, scope: &JobScope) -> Result<Self, Fault> {
        let mut snapshot = Self::default();
        let definitions = match scope {
            JobScope::All => shared.forms(None).await?,
            JobScope::Only(ids) => {
                let names: Vec<String> = ids.iter().map(JobId::to_string).collect();
                shared.forms(Some(&names)).await?
            }
        };
        for definition in definitions {
            match JobId::parse(&definition.name) {
                Ok(id) => drop(snapshot.definitions.insert(id, definition)),
                Err(error) => snapshot.invalid_names.push((definition.name, error.to_string())),
            }
        }
        snapshot.load_keys(store, &[RecordKey::Pause]).await?;
        match scope {
            JobScope::All => snapshot.load_all(store).await?,
            JobScope::Only(ids) => snapshot.load_some(store, ids).await?,
        }
        for id in snapshot.jobs.keys() {
            let absent = || SharedDefinition { name: id.to_string(), text: None, standing: DefinitionStatus::New };
            snapshot.definitions.entry(id.clone()).or_insert_with(absent);
        }
        snapshot.load_removed(store).await?;
        Ok(snapshot)
    }

    async fn load_all(&mut self, store: &dyn Store) -> Result<(), Fault> {
        let mut after = None;
        loop {
            let page = store.page(&Query::Jobs { after }, PAGE).await?;
            self.leave_alone(&page.unreadable);
            page.records.iter().for_each(|stored| self.add(&stored.record));
            let Some(RecordKey::Job(last)) = page.next(PAGE) else { break };
            after = Some(last);
        }
        let mut after = None;
        loop {
            let page = store.page(&Query::JobStates { after }, PAGE).await?;
            page.records.iter().for_each(|stored| self.add(&stored.record));
            let Some(RecordKey::JobState(last)) = page.next(PAGE) else { return Ok(()) };
            after = Some(last);
        }
    }

    async fn load_some(&mut self, store: &dyn Store, ids: &BTreeSet<JobId>) -> Result<(), Fault> {
        let keys: Vec<RecordKey> =
            ids.iter().flat_map(|id| [RecordKey::Job(id.clone()), RecordKey::JobState(id.clone())]).collect();
        for part in keys.chunks(PAGE) {
            self.load_keys(store, part).await?;
        }
        Ok(())
    }

    async fn load_keys(&mut self, store: &dyn Store, keys: &[RecordKey]) -> Result<(), Fault> {
        let ReadableRecords { records, unreadable } = load_readable(store, keys).await?;
        self.leave_alone(&unreadable);
        records.iter().filter_map(|(_, stored)| stored.as_ref()).for_each(|stored| self.add(&stored.record));
        Ok(())
    }

    /// A job that cannot be read exists, so its definition must not be taken for a new one.
    fn leave_alone(&mut self, unreadable: &[UnreadableRecord]) {
        for record in unreadable {
            if let Some(RecordKey::Job(id)) = &record.key {
                self.definitions.remove(id);
            }
        }
    }

    fn add(&mut self, record: &Record) {
        match record {
            // Cronken's form has no place for a job that is due once and already started.
            Record::Job(job) if job.id.is_ad_hoc() => {}
            Record::Job(job) => drop(self.jobs.insert(job.id.clone(), Arc::clone(job))),
            Record::Pause(pauses) => self.all_paused = pauses.is_paused(),
            Record::JobState(state) if state.pauses.is_paused() => drop(self.paused.insert(state.job.clone())),
            _ => {}
        }
    }

    /// Loads which jobs a `remove` event has removed. Only a definition without a job can belong to one.
    async fn load_removed(&mut self, store: &dyn Store) -> Result<(), Fault> {
        let ids: Vec<JobId> = self.without_job().map(|(id, _)| id.clone()).collect();
        let keys: Vec<RecordKey> = ids.iter().map(|id| RecordKey::Lock(removed_lock(id))).collect();
        let mut marks = Vec::with_capacity(keys.len());
        for part in keys.chunks(PAGE) {
            marks.extend(store.load(part).await?);
        }
        let marked = ids.into_iter().zip(marks).filter_map(|(id, mark)| mark.map(|_| id));
        self.removed.extend(marked);
        Ok(())
    }

    /// Definitions whose job does not exist.
    fn without_job(&self) -> impl Iterator<Item = (&JobId, &SharedDefinition)> {
        self.definitions.iter().filter(|(id, form)| form.text.is_some() && !self.jobs.contains_key(*id))
    }

    /// Jobs that do not exist any more while their definitions are unchanged, except those that a `remove` event has
    /// removed.
    fn deleted_here(&self) -> impl Iterator<Item = &JobId> {
        let known = self.without_job().filter(|(id, form)| form.standing.is_settled() && !self.removed.contains(*id));
        known.map(|(id, _)| id)
    }

    /// If all definitions have disappeared at once, treats them as lost and keeps the jobs: a client that removes jobs does
    /// not remove all of them at once. Returns how many jobs are kept.
    pub(crate) fn keep_jobs_if_all_definitions_are_lost(&mut self) -> usize {
        let is_gone = |form: &SharedDefinition| form.text.is_none() && form.standing == DefinitionStatus::Changed;
        let gone = self.definitions.values().filter(|form| is_gone(form)).count();
        if gone < 2 || !self.invalid_names.is_empty() || self.definitions.values().any(|form| form.text.is_some()) {
            return 0;
        }
        self.definitions
            .values_mut()
            .filter(|form| is_gone(form))
            .for_each(|form| form.standing = DefinitionStatus::New);
        gone
    }

    /// Whether all jobs are gone at once while their definitions exist.
    pub(crate) fn has_lost_all_jobs(&self) -> bool {
        self.jobs.is_empty() && self.deleted_here().count() > 1
    }

    /// Treats definitions whose jobs do not exist any more as new, so that the jobs are created again.
    pub(crate) fn restore_deleted(&mut self) {
        let ids = self.deleted_here().cloned().collect();
        self.mark_new(&ids);
    }

    /// Treats definitions whose jobs a `remove` event has removed as new. Returns those jobs.
    pub(crate) fn restore_removed(&mut self) -> BTreeSet<JobId> {
        let ids = std::mem::take(&mut self.removed);
        self.mark_new(&ids);
        ids
    }

    fn mark_new(&mut self, ids: &BTreeSet<JobId>) {
        let definitions = self.definitions.iter_mut().filter(|(id, _)| ids.contains(*id));
        definitions.for_each(|(_, definition)| definition.standing = DefinitionStatus::New);
    }
}

/// The lock that marks a job as removed by an event while its definition stays. No run holds it or waits for it.
///
/// The mark is a lock, and not a record kind of its own, because it exists only for Cronken: a record kind would bring it
/// into the core and into every store. A lock has what the mark needs. One node sets it before the job is removed, all
/// nodes see it, and any node can clear it, since [`removed_holder`] is the same on every node.
pub(crate) fn removed_lock(id: &JobId) -> LockName {
    LockName::parse(&format!("{}removed/{id}", LockName::RESERVED)).expect("an id is shorter than a lock's name")
}

/// The holder of every lock that marks a job as removed.
pub(crate) fn removed_holder() -> RunId {
    RunId::from_key(Instant::EPOCH, "removed until everything is read again")
}
