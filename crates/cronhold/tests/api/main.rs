//! The API of the real daemon, over real connections: that every endpoint does what it says, and that whatever else is
//! sent is refused without harm to those who ask well.

mod bodies;
mod conditions;
mod connections;
mod entry;
mod feed;
mod garbage;
mod jobs;
mod operations;
mod origins;
mod output;
mod paths;
mod place;
#[path = "../processes/mod.rs"]
mod processes;
mod questions;
mod runs;
mod wire;
