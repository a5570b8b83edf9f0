//! A power cut for the real daemon, or for its keeper, between any two steps of a turn, of a launch, of a report and of
//! what the keeper writes down. Whoever died is started again, and then everything has to be right. Only a build with
//! debug assertions can die at a point, and only that has these tests. Two troubles that are no deaths are here as well,
//! because they are looked at in the same way.

#![cfg(debug_assertions)]

#[path = "../log_lines/mod.rs"]
mod log_lines;
mod names;
mod outcome;
mod place;
mod points;
#[path = "../processes/mod.rs"]
mod processes;
mod story;
mod troubles;
mod workload;
