//! The real daemon on a real store: killed, stopped, started again, without room on its disk, with bad job files.

mod backup;
mod crash;
mod daemon;
mod files;
mod start_stop;
mod trouble;
