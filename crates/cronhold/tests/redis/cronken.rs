//! Nodes of Python Cronken and nodes of ours on one Redis, in one namespace. Cronken is the original program: all that
//! it reads, writes and sends comes from its own code.

mod dashboard;
mod events;
mod forms;
mod once;
mod python;
mod reaper;
mod scene;
mod theirs;
