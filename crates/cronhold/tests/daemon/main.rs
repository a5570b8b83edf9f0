//! The real daemon on a real store: killed, stopped, started again, without room on its disk, with bad job files, with
//! real programs and without its keeper.

mod backup;
mod crash;
mod daemon;
#[cfg(debug_assertions)]
mod fail_points;
mod files;
mod http;
mod keeper;
mod listening;
mod live_files;
mod loader;
#[path = "../log_lines/mod.rs"]
mod log_lines;
#[path = "../processes/mod.rs"]
mod processes;
mod programs;
mod sources;
mod start_stop;
mod trouble;
