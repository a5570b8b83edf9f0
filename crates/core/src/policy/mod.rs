//! Small decisions about runs, one pure function each. Nothing here knows where runs are kept or what time it is;
//! what a decision depends on is its argument.

pub mod batching;
pub mod catch_up;
pub mod lease;
pub mod overlap;
pub mod rendezvous;
pub mod retention;
pub mod retry;
