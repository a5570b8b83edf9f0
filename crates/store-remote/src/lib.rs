//! What stores on servers have in common. Nothing here knows the protocol of a server.
//!
//! In reading order: `url` reads and prints the URLs of stores; `stream` opens byte streams, `reconnecting` keeps a
//! connection open, and `connect_error` and `faults` say why a request failed and whether it was sent; `store_runtime`
//! and `board_handle` are what the handles of a store share; `write_counters` is for health reports; `recovery` restores
//! what a store that was rolled back has lost; `testing` starts real servers for tests.

mod board_handle;
mod connect_error;
pub mod faults;
mod reconnecting;
mod recovery;
mod store_runtime;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;
pub mod url;
mod write_counters;

pub use board_handle::BoardHandle;
pub use connect_error::ConnectError;
pub use reconnecting::{ConnectionOpener, ReconnectingConnection};
pub use recovery::{
    RecoveryRequest, RecoveryServer, RecoveryStart, RequestRejection, RestoredPart, RollbackRecovery, SeqFile,
};
pub use store_runtime::{StoreRuntime, closed};
pub use stream::{BoxedStream, ByteStream, StreamOptions, open_stream, tls_config};
pub use write_counters::WriteCounters;
