//! The embedded store: one SQLite file with plain tables that a person can query. One thread writes, and makes many
//! units durable with one sync; readers run on the threads of their callers.
//!
//! In reading order: `schema` defines the tables; `rows` converts records to rows and back; `writer` commits; `pool`,
//! `records`, `listing`, `walk` and `outputs` read; `store` implements the `Store` trait with them; `tasks` has what tasks need
//! beside that.

mod backup;
mod definitions;
mod faults;
mod listing;
mod lock_file;
mod log_check;
mod open;
mod outputs;
mod pool;
mod records;
pub mod reference;
mod rows;
mod run_listing;
mod schema;
mod store;
mod tasks;
mod walk;
mod writer;

pub use backup::{BackupError, BackupProgress, backup};
pub use open::{Options, SqliteOpenError};
pub use store::SqliteStore;
pub use tasks::SqliteTaskStore;
