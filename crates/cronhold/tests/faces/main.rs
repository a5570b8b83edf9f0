//! Tests of the command line together with a daemon: every verb that uses a daemon, run by the real binary, with its
//! output on success and on failure. There is one snapshot per verb.

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
