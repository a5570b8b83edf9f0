//! Workers on the stores that keep tasks: the reference store and SQLite.

mod faults;
mod kills;
mod runtime;
mod samples;
mod sidekiq;
mod steps;
mod stores;
mod stories;
mod unreliable;
