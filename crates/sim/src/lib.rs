//! The simulation: real engines, the code that ships, in virtual time on the in-memory store. One thread, one seed, and
//! everything that happens follows from it: who goes on next, what fails, who crashes when, what people ask for.
//!
//! In reading order: [`plot`] is what is going to happen, which `draw` draws; [`play`] is one simulation, and `acts` what
//! happens in it by itself; `stage` is what its parts share; `executor` and `time` let things happen; `cast`, `machine`,
//! `line`, `letterbox`, `mail`, `tap`, `weather` and `programs` are the world around an engine; `jobs` and `workload` are
//! what it has to do; `mirror` and [`check`] watch; [`variant`] has mistakes on purpose, which must be noticed.

mod acts;
mod cast;
mod chance;
pub mod check;
mod draw;
mod executor;
mod film;
mod jobs;
mod letterbox;
mod line;
mod machine;
mod mail;
mod mirror;
pub mod play;
pub mod plot;
mod programs;
pub mod shrink;
mod stage;
mod tap;
mod time;
pub mod variant;
mod weather;
mod workload;

use std::sync::Arc;

use cronhold_core::DecisionContext;
use cronhold_schedule::{Zone, ZoneRegistry};

pub use check::Violation;
pub use play::{SimResult, SimSettings, play, play_cut};
pub use plot::ScenarioCut;
pub use shrink::{ShrunkFailure, shrink};
pub use variant::DeliberateBug;

/// What all simulations have in common: zones that are compiled in, and no calendars.
pub fn world() -> DecisionContext {
    DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "2026a".into(), Zone::utc())
}
