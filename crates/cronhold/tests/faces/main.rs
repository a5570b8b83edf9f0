//! The command line and a daemon together, as people use them: every verb that asks a daemon, given to the real binary,
//! with what it says when all is well and when it is not. One snapshot per verb.

mod argv;
mod backfill;
mod daemon;
mod every_verb;
mod jobs;
#[path = "../log_lines/mod.rs"]
mod log_lines;
mod logs;
mod operations;
mod pauses;
mod place;
#[path = "../processes/mod.rs"]
mod processes;
mod questions;
mod redact;
mod runs;
mod shapes;
mod unreachable;
mod watch;
