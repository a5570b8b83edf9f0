//! What a decision sees: the records that were loaded for it, the world, and the stamp of its command. Whatever it
//! looks at is noted, because the commit compares exactly that.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::args::Args;
use crate::command::Stamp;
use crate::decision::Rejection;
use crate::ids::{JobId, NodeId, RunId};
use crate::record::{
    Backlog, Cursor, ForeignRun, Identity, JobRecord, JobState, Key, LockName, LockState, Node, Pauses, Record, Run,
    ScheduleId, Stored, Version,
};
use crate::world::World;

/// Records that were loaded. `None` is a record that has not been looked for yet; `Some(None)` is one that is not there.
pub trait Records {
    /// What is known of a record.
    fn get(&self, key: &Key) -> Option<Option<&Stored>>;
}

/// Why a decision stops before its end.
#[derive(Debug, Clone, PartialEq)]
pub enum Halt {
    /// It has to know these records first.
    Need(Vec<Key>),
    /// No, and why.
    Reject(Rejection),
}

impl<R: Into<Rejection>> From<R> for Halt {
    fn from(rejection: R) -> Self {
        Self::Reject(rejection.into())
    }
}

/// What a decision sees.
#[allow(missing_debug_implementations, clippy::allow_attributes, reason = "the records need not be printable")]
pub struct View<'a> {
    /// Zone data, calendars, the node's labels.
    pub world: &'a World,
    /// When, by whom and where it was asked.
    pub stamp: &'a Stamp,
    records: &'a dyn Records,
    reads: RefCell<BTreeSet<Key>>,
}

macro_rules! typed {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $record:ident, $key:expr, $variant:ident) => {
        $(#[$doc])*
        pub fn $name(&self, $($argument: $type),*) -> Result<Option<Arc<$record>>, Halt> {
            match self.stored(&$key)? {
                Some(Stored { record: Record::$variant(record), .. }) => Ok(Some(Arc::clone(record))),
                Some(other) => unreachable!("a store answered {} with {:?}", $key, other.record),
                None => Ok(None),
            }
        }
    };
}

impl<'a> View<'a> {
    /// A view of what was loaded.
    pub fn new(records: &'a dyn Records, world: &'a World, stamp: &'a Stamp) -> Self {
        Self { world, stamp, records, reads: RefCell::default() }
    }

    /// The keys that the decision looked at.
    pub fn into_reads(self) -> BTreeSet<Key> {
        self.reads.into_inner()
    }

    /// Asks for all of these at once, so that they are loaded in one round.
    pub fn need(&self, keys: impl IntoIterator<Item = Key>) -> Result<(), Halt> {
        let missing: BTreeSet<Key> = keys.into_iter().filter(|key| self.records.get(key).is_none()).collect();
        if missing.is_empty() { Ok(()) } else { Err(Halt::Need(missing.into_iter().collect())) }
    }

    /// A record as the store has it.
    pub fn stored(&self, key: &Key) -> Result<Option<&'a Stored>, Halt> {
        match self.records.get(key) {
            Some(stored) => {
                self.reads.borrow_mut().insert(key.clone());
                Ok(stored)
            }
            None => Err(Halt::Need(vec![key.clone()])),
        }
    }

    /// Whether a record is there, without loading it: one that nobody has looked for is taken to be absent. The commit
    /// compares that, and a decision that was wrong about it is made again with the record in sight.
    pub fn is_known(&self, key: &Key) -> bool {
        self.reads.borrow_mut().insert(key.clone());
        self.records.get(key).flatten().is_some()
    }

    /// The version of a record that is there.
    pub fn version(&self, key: &Key) -> Result<Option<Version>, Halt> {
        Ok(self.stored(key)?.map(|stored| stored.version))
    }

    typed! {
        /// A job.
        job(id: &JobId) -> JobRecord, Key::Job(id.clone()), Job
    }
    typed! {
        /// How far a schedule has come.
        cursor(job: &JobId, schedule: &ScheduleId) -> Cursor, Key::Cursor(job.clone(), schedule.clone()), Cursor
    }
    typed! {
        /// What is to be caught up.
        backlog(job: &JobId, schedule: &ScheduleId) -> Backlog, Key::Backlog(job.clone(), schedule.clone()), Backlog
    }
    typed! {
        /// A run.
        run(id: RunId) -> Run, Key::Run(id), Run
    }
    typed! {
        /// Who holds a lock.
        lock(name: &LockName) -> LockState, Key::Lock(name.clone()), Lock
    }

    typed! {
        /// A node.
        node(id: NodeId) -> Node, Key::Node(id), Node
    }

    typed! {
        /// The latest run of a job on a foreign node.
        foreign_run(job: &JobId) -> ForeignRun, Key::Foreign(job.clone()), Foreign
    }

    /// A job's runs as a set; those of a job that never ran, when there is no record.
    pub fn job_state(&self, job: &JobId) -> Result<Arc<JobState>, Halt> {
        match self.stored(&Key::JobState(job.clone()))? {
            Some(Stored { record: Record::JobState(state), .. }) => Ok(Arc::clone(state)),
            _ => Ok(Arc::new(JobState::new(job.clone()))),
        }
    }

    /// The latest outcomes of a job with certain args.
    pub fn identity(&self, job: &JobId, args: &Args) -> Result<Arc<Identity>, Halt> {
        match self.stored(&Key::Identity(job.clone(), args.clone()))? {
            Some(Stored { record: Record::Identity(identity), .. }) => Ok(Arc::clone(identity)),
            _ => Ok(Arc::new(Identity::new(job.clone(), args.clone()))),
        }
    }

    /// Whether everything is paused.
    pub fn pauses(&self) -> Result<Arc<Pauses>, Halt> {
        match self.stored(&Key::Pause)? {
            Some(Stored { record: Record::Pause(pauses), .. }) => Ok(Arc::clone(pauses)),
            _ => Ok(Arc::default()),
        }
    }
}
