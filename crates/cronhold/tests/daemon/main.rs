//! Tests of the real daemon on a real store: it is killed, stopped and restarted, its disk is full, its job files are
//! invalid, it runs real programs and delivers actions,
//! and its keeper dies.

mod actions;
mod alarms;
mod apsis;
mod backup;
mod channels;
mod conditions;
mod crash;
mod daemon;
#[cfg(debug_assertions)]
mod fail_points;
mod files;
mod full_disk;
mod http;
mod http_programs;
mod keeper;
mod listening;
mod live_files;
mod loader;
#[path = "../log_lines/mod.rs"]
mod log_lines;
mod plugins;
#[path = "../processes/mod.rs"]
mod processes;
mod programs;
mod receiver;
mod remote_programs;
mod resume;
#[path = "../resume_all/mod.rs"]
mod resume_all;
#[path = "../service/mod.rs"]
mod service;
mod sources;
mod start_stop;
mod task_programs;
mod triggers;
