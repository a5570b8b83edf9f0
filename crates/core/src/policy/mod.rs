//! Policies: small decisions about runs, one pure function each. Everything that a policy depends on is an argument.

pub mod action_filter;
pub mod batching;
pub mod catch_up;
pub mod delivery;
pub mod lease;
pub mod overlap;
pub mod rendezvous;
pub mod retention;
pub mod retry;
