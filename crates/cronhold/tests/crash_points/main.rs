//! Kills the real daemon or its keeper between any two steps of a turn, a launch, a report and a write to the keeper's
//! journal. Then it restarts the killed process and checks all outcomes. Fail points exist only in builds with debug
//! assertions, and so do these tests. A suspended daemon and a rolled back store are tested here as well, with the same
//! checks.

#![cfg(debug_assertions)]

#[path = "../log_lines/mod.rs"]
mod log_lines;
mod names;
mod other_faults;
mod outcome;
mod points;
#[path = "../processes/mod.rs"]
mod processes;
mod sandbox;
mod scenario;
mod workload;
