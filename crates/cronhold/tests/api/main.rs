//! Tests of the API of the real daemon, over real connections: every endpoint does what its reference says, and all
//! other input is refused without affecting valid requests.

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
#[path = "../processes/mod.rs"]
mod processes;
mod queries;
mod runs;
mod sandbox;
mod sidejob;
mod tasks;
mod wire;
