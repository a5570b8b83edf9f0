//! What there is of jobs in both places at one look: forms as other programs have them, and records as we have them.
//! Forms are read first. Whatever changes after that is newer in our records, and settling compares the form.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::JobId;
use cronhold_core::record::{JobRecord, Key, LockName, Record};
use cronhold_store::{Fault, Query, Shared, SharedForm, Standing, Store};

/// Records that are read at once.
const PAGE: usize = 1_000;

/// Which jobs are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scope {
    /// All of them.
    All,
    /// These.
    Some(BTreeSet<JobId>),
}

/// What there is.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// Forms by the jobs that they are of; also those of jobs that have none.
    pub(super) forms: BTreeMap<JobId, SharedForm>,
    /// Names that cannot be those of a job, with why.
    pub(super) strange: Vec<(String, String)>,
    /// Our jobs.
    pub(super) jobs: BTreeMap<JobId, Arc<JobRecord>>,
    /// Those of them that are paused.
    pub(super) paused: BTreeSet<JobId>,
    /// Whether everything is paused.
    pub(super) is_held: bool,
    /// Jobs that somebody had removed here and that stay so until everything is read again, whatever becomes of their
    /// forms meanwhile.
    pub(super) removed: BTreeSet<JobId>,
}

impl Sight {
    /// Looks at both places.
    pub(super) async fn read(store: &dyn Store, shared: &dyn Shared, scope: &Scope) -> Result<Self, Fault> {
        let mut sight = Self::default();
        let forms = match scope {
            Scope::All => shared.forms(None).await?,
            Scope::Some(ids) => {
                let names: Vec<String> = ids.iter().map(JobId::to_string).collect();
                shared.forms(Some(&names)).await?
            }
        };
        for form in forms {
            match JobId::parse(&form.name) {
                Ok(id) => drop(sight.forms.insert(id, form)),
                Err(error) => sight.strange.push((form.name, error.to_string())),
            }
        }
        store.load(&[Key::Pause]).await?.iter().flatten().for_each(|stored| sight.take(&stored.record));
        match scope {
            Scope::All => sight.read_all(store).await?,
            Scope::Some(ids) => sight.read_some(store, ids).await?,
        }
        for id in sight.jobs.keys() {
            let absent = || SharedForm { name: id.to_string(), text: None, standing: Standing::New };
            sight.forms.entry(id.clone()).or_insert_with(absent);
        }
        sight.read_removed(store).await?;
        Ok(sight)
    }

    async fn read_all(&mut self, store: &dyn Store) -> Result<(), Fault> {
        let mut after = None;
        loop {
            let page = store.page(&Query::Jobs { after }, PAGE).await?;
            page.records.iter().for_each(|stored| self.take(&stored.record));
            let Some(Key::Job(last)) = page.next(PAGE) else { break };
            after = Some(last);
        }
        let mut after = None;
        loop {
            let page = store.page(&Query::JobStates { after }, PAGE).await?;
            page.records.iter().for_each(|stored| self.take(&stored.record));
            let Some(Key::JobState(last)) = page.next(PAGE) else { return Ok(()) };
            after = Some(last);
        }
    }

    async fn read_some(&mut self, store: &dyn Store, ids: &BTreeSet<JobId>) -> Result<(), Fault> {
        let keys: Vec<Key> = ids.iter().flat_map(|id| [Key::Job(id.clone()), Key::JobState(id.clone())]).collect();
        for part in keys.chunks(PAGE) {
            store.load(part).await?.iter().flatten().for_each(|stored| self.take(&stored.record));
        }
        Ok(())
    }

    fn take(&mut self, record: &Record) {
        match record {
            Record::Job(job) => drop(self.jobs.insert(job.id.clone(), Arc::clone(job))),
            Record::Pause(pauses) => self.is_held = pauses.is_paused(),
            Record::JobState(state) if state.pauses.is_paused() => drop(self.paused.insert(state.job.clone())),
            _ => {}
        }
    }

    /// Only a form that we have no job for can be one of those that stay.
    async fn read_removed(&mut self, store: &dyn Store) -> Result<(), Fault> {
        let ids: Vec<JobId> = self.jobless().map(|(id, _)| id.clone()).collect();
        let keys: Vec<Key> = ids.iter().map(|id| Key::Lock(removed_lock(id))).collect();
        let mut marks = Vec::with_capacity(keys.len());
        for part in keys.chunks(PAGE) {
            marks.extend(store.load(part).await?);
        }
        let marked = ids.into_iter().zip(marks).filter_map(|(id, mark)| mark.map(|_| id));
        self.removed.extend(marked);
        Ok(())
    }

    /// Forms of jobs that we do not have.
    fn jobless(&self) -> impl Iterator<Item = (&JobId, &SharedForm)> {
        self.forms.iter().filter(|(id, form)| form.text.is_some() && !self.jobs.contains_key(*id))
    }

    /// Jobs that we do not have any more, and whose forms are still as we knew them; but for those that were removed here
    /// for a while.
    fn forgettable(&self) -> impl Iterator<Item = &JobId> {
        let known = self.jobless().filter(|(id, form)| form.standing.is_settled() && !self.removed.contains(*id));
        known.map(|(id, _)| id)
    }

    /// Somebody has lost all forms at once: nobody removes all jobs in that way, and ours are kept. Answers how many.
    pub(super) fn keep_when_all_forms_are_gone(&mut self) -> usize {
        let is_gone = |form: &SharedForm| form.text.is_none() && form.standing == Standing::Changed;
        let gone = self.forms.values().filter(|form| is_gone(form)).count();
        if gone < 2 || !self.strange.is_empty() || self.forms.values().any(|form| form.text.is_some()) {
            return 0;
        }
        self.forms.values_mut().filter(|form| is_gone(form)).for_each(|form| form.standing = Standing::New);
        gone
    }

    /// Whether all of our jobs are gone at once while their forms are there.
    pub(super) fn has_lost_all_jobs(&self) -> bool {
        self.jobs.is_empty() && self.forgettable().count() > 1
    }

    /// Takes forms of jobs that we do not have any more for new ones.
    pub(super) fn take_for_new(&mut self) {
        let ids = self.forgettable().cloned().collect();
        self.renew(&ids);
    }

    /// The same for those that were removed here for a while: that is over. Answers which they are.
    pub(super) fn let_return(&mut self) -> BTreeSet<JobId> {
        let ids = std::mem::take(&mut self.removed);
        self.renew(&ids);
        ids
    }

    fn renew(&mut self, ids: &BTreeSet<JobId>) {
        let forms = self.forms.iter_mut().filter(|(id, _)| ids.contains(*id));
        forms.for_each(|(_, form)| form.standing = Standing::New);
    }
}

/// The lock that says of a job that it was removed here by an event, and that its form stays. Nobody waits for it, and
/// nobody's run has it.
pub(super) fn removed_lock(id: &JobId) -> LockName {
    LockName::parse(&format!("{}removed/{id}", LockName::RESERVED)).expect("an id is shorter than a lock's name")
}
