//! What is said over HTTP: the types of requests and answers, and the client that speaks them. Server and command line
//! share them, so that neither can say what the other does not understand.

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

/// Where the API begins.
pub const BASE: &str = "/api/v1";
/// The port that a daemon listens on when it is not told another one.
pub const PORT: u16 = 2766;
/// Items in a page when nobody says how many.
pub const LIMIT: usize = 50;
/// Items in a page at most.
pub const LIMIT_MAX: usize = 1_000;
