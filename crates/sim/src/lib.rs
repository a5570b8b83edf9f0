//! The simulation: real engines, the code that ships, in virtual time on the in-memory store. One thread, one seed, and
//! everything that happens follows from it: who goes on next, what fails, who crashes when, what people ask for.
//!
//! In reading order: [`plot`] is what is going to happen, which `draw` draws; [`play`] is one simulation, and `acts` what
//! happens in it by itself; `stage` is what its parts share; `executor` and `time` let things happen; `cast`, `machine`,
//! `line`, `letterbox`, `mail`, `tap`, `weather` and `programs` are the world around an engine; `jobs` and `workload` are
//! what it has to do; `mirror` and [`check`] watch; [`variant`] has mistakes on purpose, which must be noticed.

mod chance;
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

/// What all simulations have in common: zones that are compiled in, and no calendars.
pub fn world() -> DecisionContext {
    DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "2026a".into(), Zone::utc())
}
