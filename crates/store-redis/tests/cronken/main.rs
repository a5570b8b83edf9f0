//! Cronken's keys, key by key, as its document describes them: written through the port, and read with plain commands.
//! One program, because linking it many times is what would take long.

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
