//! The embedded store: one SQLite file with plain tables that a person can query. One thread writes and makes many
//! units durable together; readers work beside it on their callers' threads.
//!
//! In reading order: `schema` has the tables; `rows` turns records into rows and back; `writer` commits; `pool`,
//! `records`, `listing` and `outputs` read; `store` puts them together.

mod backup;
mod faults;
mod hints;
mod listing;
mod lock_file;
mod open;
mod outputs;
mod pool;
mod records;
pub mod reference;
mod rows;
mod run_listing;
mod schema;
mod store;
mod writer;

pub use backup::{BackupError, Progress, backup};
pub use open::{OpenError, Options};
pub use store::SqliteStore;
