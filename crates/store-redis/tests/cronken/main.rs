//! Cronken's keys, one by one, as its documentation describes them: written through the `Store` trait, and read with
//! plain commands. One test binary, because linking several takes long.

mod fixture;
mod foreign_runs;
mod instances;
mod limits;
mod lines;
mod locks;
mod pauses;
mod peers;
mod results;
mod shared;
mod unfinished_runs;
