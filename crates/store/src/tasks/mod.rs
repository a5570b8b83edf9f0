//! The port for tasks, which is separate from the one for jobs. A record of a job has one version, which every writer
//! compares. Tasks need the opposite: a write to a port, a wake-up and a message must not conflict with the step that is
//! running, the store chooses the next step, and it finds out at the commit who receives a message.
//!
//! In reading order: [`port`] has the trait; [`rows`] has what an implementation with rows provides; [`execute`] carries
//! out units and leases on such rows, for all implementations alike; [`window`] has what a step reads; [`board`] delivers
//! notifications within a process; [`memory`] has the reference implementation.

pub mod board;
pub mod execute;
pub mod memory;
pub mod port;
pub mod process;
pub mod rows;
pub mod window;
mod wrapper;

pub use board::TaskBoard;
pub use execute::{ExecuteContext, TaskEffects};
pub use memory::MemoryTaskStore;
pub use port::{
    ArrivalMark, BareJob, BareJobEnd, BareJobEnding, ChannelListener, ChannelMessage, ChannelSummary, LeaseClass,
    LeaseRequest, LeasedStep, QueueSummary, StepCall, TaskQuery, TaskReceipt, TaskStore, TaskTotals, TaskUnitError,
};
pub use process::{HeartbeatReply, ProcessHeartbeat, ProcessId, ProcessSignal, WorkerProcess};
pub use rows::{OnceRecord, PortRecord, TaskCounter, TaskRows};
pub use window::{ChildWindow, PortWindow, TaskWindow, WINDOW_BYTES_MAX, WindowLimits};
pub use wrapper::TaskStoreWrapper;
