//! The HTTP API: request and response types, shared by server and command line, and the HTTP client.

pub mod client;
mod entry;
mod event;
mod job;
mod node;
mod operation;
mod peer;
mod problem;
mod run;
mod said;

pub use entry::{Address, Link, Token};
pub use event::{JobChange, NodeChange, PauseChange, Reset, StoreChange};
pub use job::{FileMistake, Job, JobDetail, JobList, Occurrence, Pause, Schedule};
pub use node::{Drained, Health, Node};
pub use operation::{Control, Made, MarkBody, PauseBody, RerunBody, RunBody, SignalBody, SkipBody};
pub use peer::{PeerRun, PeerState};
pub use problem::{Code, Problem};
pub use run::{Run, RunDetail, RunList, Step, Times};
pub use said::{Backfill, BackfillItem, Holes, Line, Reloaded, Why};

/// Path prefix of the API.
pub const BASE: &str = "/api/v1";
/// Default port of the daemon.
pub const PORT: u16 = 2766;
/// Default number of items in a page.
pub const LIMIT: usize = 50;
/// Maximum number of items in a page.
pub const LIMIT_MAX: usize = 1_000;
