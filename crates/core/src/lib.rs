//! The pure core: jobs and runs as types, the run state table, policies and templates. Nothing here reads a clock, the
//! environment or a file, and nothing is random: time, zone data, calendars and random bits are arguments.
//!
//! In reading order: [`job`] has the definition of a job; [`template`] and [`args`] bind it to the values of one run;
//! [`ids`] has the ids of jobs, runs and nodes; [`run`] has the states and the transition table; [`policy`] has the
//! small decisions about runs. [`record`] has what stores keep, and [`decide`] turns a [`command`] into a [`decision`].

pub mod args;
pub mod command;
pub mod decide;
pub mod decision;
pub mod hmac;
pub mod holes;
pub mod ids;
pub mod job;
pub mod name_map;
pub mod owed;
pub mod percent;
pub mod plugin;
pub mod policy;
pub mod record;
pub mod remote;
pub mod run;
pub mod signal;
pub mod task;
pub mod template;
pub mod view;
pub mod when;
pub mod why;
pub mod world;

pub use args::Args;
pub use ids::{JobId, JobUid, NodeId, RunId, RunNumber, RunRef};
pub use job::Job;
pub use name_map::NameMap;
pub use run::State;
pub use template::Template;
pub use when::When;
pub use world::DecisionContext;
