//! Deterministic simulation: real engines (the code that ships) in virtual time on the in-memory store. It runs on one
//! thread, and one seed decides everything: the order of tasks, which calls fail, when daemons crash, and what
//! operators request.
//!
//! In reading order: [`scenario`] lists the events of a simulation, and `draw` draws them from a seed. [`simulation`]
//! runs one simulation, and `events` applies its events. `context` holds what all parts share; `executor` and `time`
//! run tasks in virtual time. `cluster`, `machine`, `connection`, `reply_slot`, `hint_delivery`, `observed_store`,
//! `faults` and `programs` are the environment of an engine. `jobs` and `workload` generate jobs and operator commands.
//! `store_model` mirrors the store, [`check`] compares every event with it, and `trace` records events as text.
//! [`shrink()`] reduces a failing simulation. [`deliberate_bugs`] injects bugs that the checkers must detect.

pub mod check;
mod cluster;
mod connection;
mod context;
pub mod deliberate_bugs;
mod draw;
mod events;
mod executor;
mod faults;
mod hint_delivery;
mod jobs;
mod machine;
mod observed_store;
mod programs;
mod random;
mod reply_slot;
pub mod scenario;
pub mod shrink;
pub mod simulation;
mod store_model;
mod time;
mod trace;
mod workload;

use std::sync::Arc;

use cronhold_core::DecisionContext;
use cronhold_schedule::{Zone, ZoneRegistry};

pub use check::Violation;
pub use deliberate_bugs::DeliberateBug;
pub use scenario::ScenarioCut;
pub use shrink::{ShrunkFailure, shrink};
pub use simulation::{SimResult, SimSettings, simulate, simulate_cut};

/// The decision context of all simulations: bundled time zones and no calendars.
pub fn world() -> DecisionContext {
    DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "2026a".into(), Zone::utc())
}
