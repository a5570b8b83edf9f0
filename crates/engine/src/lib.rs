//! A node. It waits on its ports only (clock, chance, store, and two bounded queues), so that any executor can drive it:
//! a real one with real time, or a simulation that decides what happens next.
//!
//! In reading order: [`ports`] is what it needs; [`intake`] is how the world talks to it; [`plan`] is what it will do
//! and when; [`node`] is the loop, and `due` what goes into its turns; `effects`, `recovery`, `watchdog` and `retention`
//! are its duties. Among others it has more: `beacon` says that it is alive, and `leases` is what its
//! programs get from that; `members` is who else is, `company` is who
//! goes first and what becomes of those who are gone, `hints` is hearing of changes; `node_clock` is what time it is.
//! [`clerk`] is what remains without a node.

mod beacon;
pub mod clerk;
mod clock_watch;
mod company;
mod due;
mod effects;
mod foresight;
mod hints;
pub mod intake;
mod leases;
mod members;
mod meter;
pub mod node;
mod node_clock;
pub mod plan;
pub mod ports;
pub mod queue;
mod race;
mod recovery;
mod resting;
mod retention;
mod skew;
mod store_clock;
mod watchdog;

pub use clerk::Clerk;
pub use intake::{Handle, Refused};
pub use meter::{Meter, Reading};
pub use node::{Engine, EngineError, Options};
pub use ports::{Clock, Entropy, Feed, LaunchRequest, News, NoPrograms, Ports, ProgramRunner};
