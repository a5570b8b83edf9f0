//! Tests of the command line together with a daemon: every verb that uses a daemon, run by the real binary, with its
//! output on success and on failure. There is one snapshot per verb.

mod ad_hoc;
mod argv;
mod backfill;
mod bench;
mod bulk;
mod chain;
mod coming;
mod daemon;
mod every_verb;
mod jobs;
mod json_output;
mod latest;
#[path = "../log_lines/mod.rs"]
mod log_lines;
mod logs;
mod operations;
mod pauses;
#[path = "../processes/mod.rs"]
mod processes;
mod program_rights;
mod queries;
mod redact;
mod rename;
mod runs;
mod sandbox;
#[path = "../task_stories/mod.rs"]
mod task_stories;
mod tasks;
mod texts;
mod unreachable;
mod watch;
mod workers;
