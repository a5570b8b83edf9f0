//! The keeper as a process, with real programs: all of its tests are one program, because all share the same support.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

mod ends;
mod leases;
mod load;
mod programs;
mod restarts;
mod strays;
mod talk;
