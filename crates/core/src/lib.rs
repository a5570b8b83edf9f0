//! The pure core: jobs and runs as types, the run state table, policies and templates. Nothing here reads a clock, the
//! environment or a file, and nothing is random: time, zone data, calendars and chance are arguments.
//!
//! In reading order: [`job`] is what someone wrote; [`template`] and [`args`] turn it into what one run gets; [`ids`]
//! name things; [`run`] has the states and the one table of transitions; [`policy`] has the small decisions about runs.

pub mod args;
pub mod command;
pub mod decide;
pub mod decision;
pub mod holes;
pub mod ids;
pub mod job;
pub mod owed;
pub mod policy;
pub mod record;
pub mod run;
pub mod signal;
pub mod template;
pub mod view;
pub mod when;
pub mod why;
pub mod world;

pub use args::Args;
pub use ids::{JobId, JobUid, NodeId, RunId, RunNumber, RunRef};
pub use job::Job;
pub use run::State;
pub use template::Template;
pub use when::When;
pub use world::DecisionContext;
