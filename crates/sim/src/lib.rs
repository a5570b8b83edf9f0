//! Deterministic simulation: real engines (the code that ships) in virtual time on the in-memory store. It runs on one
//! thread, and one seed decides everything: the order of tasks, which calls fail, when daemons crash, and what
//! operators request.
//!
//! In reading order: [`scenario`] lists the events of a simulation, and `draw` draws them from a seed. [`simulation`]
//! runs one simulation, and `events` applies its events. `context` holds what all parts share; `executor` and `time`
//! run tasks in virtual time. `cluster`, `machine`, `connection`, `reply_slot`, `hint_delivery`, `observed_store`,
//! `faults` and `programs` are the environment of an engine. `jobs`, `job_actions` and `workload` generate jobs and operator commands.
//! `rollback` is a store that forgets a suffix of its commits. `store_model` mirrors the store, [`check`] compares every event with it, and `trace` records events as text.
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
mod job_actions;
mod job_batching;
mod job_conditions;
mod jobs;
mod machine;
mod observed_store;
mod programs;
mod random;
mod reply_slot;
mod rollback;
pub mod scenario;
pub mod shrink;
pub mod simulation;
mod store_model;
mod time;
mod trace;
mod workload;

use std::sync::{Arc, LazyLock};

use cronhold_core::DecisionContext;
use cronhold_core::policy::lease::STALE_AFTER;
use cronhold_schedule::{Zone, ZoneRegistry};

pub use check::Violation;
pub use deliberate_bugs::DeliberateBug;
pub use scenario::ScenarioCut;
pub use shrink::{ShrunkFailure, shrink};
pub use simulation::{SimResult, SimSettings, simulate, simulate_cut};

/// The decision context of all simulations: bundled time zones and no calendars.
pub fn world() -> DecisionContext {
    let world = DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "2026a".into(), Zone::utc());
    // Shorter than by default, so that nodes are lost within the time that a scenario covers.
    DecisionContext { lease: STALE_AFTER, ..world }
}

/// The zone that has other rules in the newer release of the time zone data: no summer time.
pub(crate) const CHANGED_ZONE: &str = "Europe/Berlin";
/// That release.
pub(crate) const NEWER_ZONES: &str = "2026b";

/// The zones of that release.
pub(crate) fn newer_zones() -> Arc<ZoneRegistry> {
    static ZONES: LazyLock<Arc<ZoneRegistry>> =
        LazyLock::new(|| Arc::new(ZoneRegistry::bundled().with_rules_of(CHANGED_ZONE, "Africa/Brazzaville")));
    Arc::clone(&ZONES)
}
