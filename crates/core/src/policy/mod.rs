//! Small decisions about runs, one pure function each. Nothing here knows where runs are kept or what time it is;
//! what a decision depends on is its argument.

pub mod batching;
pub mod catch_up;
pub mod overlap;
pub mod retention;
pub mod retry;
