//! Nodes of Python Cronken and nodes of ours on one Redis, in one namespace. Cronken is the original program: all that
//! it reads, writes and sends comes from its own code.

mod dashboard;
mod definitions;
mod events;
mod locked_jobs;
mod mixed_nodes;
mod python;
mod python_runs;
mod reaper;
