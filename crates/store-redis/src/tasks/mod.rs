//! Tasks on Redis. The keys of SideJob and Sidekiq are the record; our own keys are beside them, below `cronhold:`.
//!
//! A change is decided here, by the code that all stores share, on facts that were read from the server. One script call
//! compares these facts with what is stored, and carries out all changes of a batch, or none if a fact has changed; then
//! the stale facts are read again and the change is decided again. So everything that a step does is one commit, and
//! foreign clients that change the same keys are noticed.
//!
//! In reading order: `keys`, `texts` and `process_texts` have names and formats; `facts` has what can be read; `changes`
//! has the rows of a batch, `rows` and `ready` the access to them; `commands` turns changes into commands; `lane` carries
//! out batches; `work` has what a batch consists of; `bare_jobs` and `retries` have jobs of plain
//! Sidekiq clients; `windows` and `lists` read; `sweep` repairs what other
//! clients have stopped; `arrivals` and `listener` receive notifications; `store` implements the trait.

mod arrivals;
mod bare_jobs;
mod changes;
mod commands;
mod facts;
mod keys;
mod lane;
mod listener;
mod lists;
mod process_texts;
mod ready;
mod retries;
mod rows;
mod scripts;
mod store;
mod sweep;
mod texts;
mod undo_table;
mod windows;
mod work;

use std::fmt;

use cronhold_core::task::TaskRefusal;
use cronhold_store::Fault;

pub use self::store::RedisTaskStore;
pub(crate) use self::store::{RedisTaskParts, RuntimeOwner, TaskOptions};

/// Why a change of tasks cannot be carried out.
#[derive(Debug)]
pub(crate) enum RedisTaskError {
    Refused(TaskRefusal),
    /// A key was damaged by another client.
    Damaged(Fault),
}

impl RedisTaskError {
    /// The error for a key whose value cannot be read.
    fn damaged(key: &str, why: &dyn fmt::Display) -> Self {
        Self::Damaged(Fault::Permanent(format!("the key {key} of tasks cannot be read: {why}")))
    }
}

impl From<TaskRefusal> for RedisTaskError {
    fn from(refusal: TaskRefusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Nothing is refused while tasks are only read.
impl From<RedisTaskError> for Fault {
    fn from(error: RedisTaskError) -> Self {
        match error {
            RedisTaskError::Refused(refusal) => Self::Permanent(refusal.to_string()),
            RedisTaskError::Damaged(fault) => fault,
        }
    }
}
