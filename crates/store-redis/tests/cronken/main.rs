//! Cronken's keys, one by one, as its documentation describes them: written through the `Store` trait, and read with
//! plain commands. One test binary, because linking several takes long.

mod company;
mod ends;
mod foreign_runs;
mod limits;
mod lines;
mod locks;
mod moments;
mod pauses;
mod peers;
mod place;
mod shared;
