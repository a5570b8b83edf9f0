//! Workers on the stores that keep tasks: the reference store and SQLite.

mod executable;
mod faults;
mod kill_points;
mod kills;
mod limits;
mod runtime;
mod samples;
mod sidekiq;
mod steps;
mod stores;
mod stories;
mod unreliable;
