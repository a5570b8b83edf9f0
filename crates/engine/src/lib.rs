//! A node. It waits only on its ports (clock, entropy, store, and bounded queues), so that any executor can drive it: a
//! real one with real time, or a simulation that decides what happens next.
//!
//! In reading order: [`ports`] is what a node needs; [`intake`] is its inputs; [`plan`] is what it will do and when;
//! [`node`] is the loop and its duties. The loop connects parts that each have one file and private state: `agenda`,
//! `local_programs`, `local_deliveries`, `local_probes`, `membership`, `pending_commands`, `pending_hints`, `store_health` and `node_clock`. `heartbeater`
//! runs beside the loop, and `leases` is what programs get from it; `claim_order` is which node acts first.
//! [`command_executor`] carries out commands on a shared store without a node.

mod agenda;
mod claim_lag;
mod claim_order;
mod clock_watch;
pub mod command_executor;
mod counters;
pub mod expiry;
mod heartbeater;
mod history_moves;
pub mod intake;
mod leases;
mod local_deliveries;
mod local_probes;
mod local_programs;
mod members;
mod membership;
pub mod node;
mod node_clock;
mod paused_occurrences;
mod pending_commands;
mod pending_hints;
pub mod plan;
pub mod ports;
pub mod queue;
mod race;
mod retention;
mod run_subscriptions;
mod skew;
mod store_clock;
mod store_health;
mod unconfirmed_commits;
mod waiting_runs;
mod watchdog_progress;

pub use command_executor::CommandExecutor;
pub use counters::{ActionCount, CounterSnapshot, Counters};
pub use history_moves::next_history_moves;
pub use intake::{NodeHandle, RequestError};
pub use node::{Engine, EngineError, Options};
pub use ports::{
    EngineEvent, EngineObserver, EntropySource, LaunchRequest, MachineClock, NoPrograms, NodePorts, ProbeRequest,
    ProgramRunner,
};
pub use run_subscriptions::RunSubscriptions;
