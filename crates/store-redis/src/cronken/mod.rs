//! Everything that exists only because Cronken's nodes and clients may use the same namespace: keys in Cronken's format
//! (the projection), its job definitions and events (the shared part), its runs (foreign runs), and whether its nodes
//! are there (peers). The rest of the store uses only what this file exports.

mod event_sequencer;
mod foreign;
mod foreign_runs;
mod peers;
mod presence;
mod projection;
mod shared;

pub(crate) use foreign::{FOREIGN_SCRIPT, decode_foreign_run};
pub(crate) use peers::PeerFlag;
pub(crate) use presence::NodePresence;
pub(crate) use projection::{PROJECTION_SCRIPTS, Projection, Projector};
pub(crate) use shared::SharedKeys;
