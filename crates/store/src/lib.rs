//! The `Store` trait, which every store implements for typed records; the turn, which is the only way to change
//! anything; what processes remember to survive a rollback of their store; and the reference implementation, which
//! keeps everything in memory.

#[cfg(feature = "conformance")]
pub mod conformance;
mod definitions;
mod expiry;
mod fault;
mod hash;
mod hint_board;
mod jobs;
pub mod key_names;
mod limits;
mod lock;
mod lock_entry;
pub mod memory;
mod nodes;
mod page;
mod port;
mod record_tables;
pub mod rollback;
#[cfg(any(test, feature = "conformance"))]
mod seeded_random;
mod shared;
pub mod tasks;
#[cfg(feature = "conformance")]
pub mod troubles;
mod turn;
mod unit;
mod unknown_outcome;
mod unreadable;
mod validation;
mod walk;
mod wrapper;
mod writer_session;

pub use definitions::{DefinitionPage, JobDefinition, StoredDefinition};
pub use expiry::{OUTPUTS_A_STEP, OutputExpiry, expire_outputs, trim_outputs};
pub use fault::Fault;
pub use hash::SeedlessMap;
pub use hint_board::{HandleId, HintBoard};
pub use jobs::find_job;
pub use limits::StoreLimits;
pub use lock::lock_mutex;
pub use lock_entry::{LockEntry, LockHold};
pub use memory::MemoryStore;
pub use nodes::all_nodes;
pub use page::{Page, Query, RunQuery};
pub use port::{
    AheadCommit, Chunk, ClockFn, CommitFuture, Hint, Obligation, OutputSizes, Pending, Store, StoreHealthReport,
    WriterId,
};
pub use record_tables::RecordTables;
pub use shared::{
    DefinitionRules, DefinitionStatus, DefinitionUpdate, EventPlace, ForeignSystem, NodeListChange, NodeRegistration,
    SharedDefinition, SharedEvent, SharedRun, SharedRunState, SharedStore, has_foreign_nodes,
};
pub use turn::{AheadTurn, CommandOutcome, InFlightCommit, PreparedTurn, StampedCommand};
pub use unit::{Unit, UnitReceipt, UnitRefusal};
pub use unreadable::{ReadableRecords, UnreadableRecord, load_readable};
pub use validation::{BatchValidator, NetChange, NetEffect, NetLock, NetRecord, VersionSource};
pub use walk::{WalkPage, WalkPlace};
pub use wrapper::Wrapper;
pub use writer_session::WriterSession;
