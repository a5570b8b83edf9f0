//! The keeper as a process, with real programs. All tests are one binary, because they share the same support.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod support;

mod ends;
mod leases;
mod load;
mod outputs;
mod programs;
mod restarts;
mod strays;
mod talk;
