//! A node. It waits on its ports only (clock, chance, store, and two bounded queues), so that any executor can drive it:
//! a real one with real time, or a simulation that decides what happens next.
//!
//! In reading order: [`ports`] is what it needs; [`intake`] is how the world talks to it; [`plan`] is what it will do
//! and when; [`node`] is the loop; `recovery`, `watchdog`, `clock_watch`, `retention` and `effects` are its duties.

mod clock_watch;
mod effects;
pub mod intake;
mod meter;
pub mod node;
pub mod plan;
pub mod ports;
pub mod queue;
mod race;
mod recovery;
mod retention;
mod watchdog;

pub use intake::{Handle, Refused};
pub use meter::{Meter, Reading};
pub use node::{Engine, Options};
pub use ports::{Clock, Entropy, Feed, News, Outside, Ports, Task};
