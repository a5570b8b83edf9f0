//! Programs: what runs do in the world. A kind of program takes tasks and answers with reports; who carries tasks and
//! reports between it and a node is not its concern, so that it can be tested without one.
//!
//! [`Noops`] do nothing. [`Processes`] are the programs that the keeper has; [`launch`] says how one is started, and
//! [`output`] reads what it writes.

pub mod launch;
mod noop;
pub mod output;
mod process;
#[cfg(test)]
mod testing;

pub use noop::Noops;
pub use process::{Due, Finish, Processes};
