//! Workers of tasks.
//!
//! A worker is a type that implements [`Worker`]: it makes steps of the tasks of one class. A step reads in ports,
//! writes ports, changes the state, and creates children; all of it is one commit, or nothing. [`WorkerRuntime`]
//! registers workers and makes their steps, on a pool of threads or one after the other.
//!
//! In reading order: [`worker`] has the trait; [`step`] has what a worker can do in a step; [`perform`] makes one step;
//! [`bare`] performs jobs of plain Sidekiq clients; [`runtime`] leases steps, sends heartbeats, and stops.
//!
//! ```
//! use std::sync::Arc;
//!
//! use cronhold_schedule::Instant;
//! use cronhold_store::tasks::MemoryTaskStore;
//! use cronhold_worker::{StepResult, TaskStep, Worker, WorkerRuntime};
//!
//! struct Double;
//!
//! impl Worker for Double {
//!     fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
//!         step.for_inputs(&["number"], |step, (number,): (i64,)| step.write("double", &(2 * number)))
//!     }
//! }
//!
//! let store = Arc::new(MemoryTaskStore::new(Arc::new(|| Instant::from_secs(1_800_000_000))));
//! let ports = r#"{"inports":{"number":{}},"outports":{"double":{}}}"#;
//! let runtime = WorkerRuntime::new(store, "numbers").unwrap().with_class("Double", ports, Double).unwrap();
//! runtime.register().unwrap();
//! let task = runtime.create("Double", &()).unwrap();
//! runtime.write(task, "number", &21).unwrap();
//! runtime.drain(10).unwrap();
//! assert_eq!(runtime.read::<i64>(task, "double").unwrap(), Some(42));
//! ```

pub mod bare;
mod block_on;
mod error;
pub mod executable;
pub mod perform;
pub mod remote_store;
mod requests;
pub mod runtime;
pub mod step;
mod wake_signal;
pub mod worker;

pub use bare::{BareJobReport, BareJobStep};
pub use block_on::block_on;
pub use error::WorkerError;
pub use executable::{ExecutableEvent, ExecutableHandle, ExecutableMode, ExecutableOptions, PreparedExecutable};
pub use perform::{StepOutcome, StepReport, perform_step_with};
pub use remote_store::RemoteTaskStore;
pub use runtime::{RuntimeEvent, StopHandle, WorkerRuntime};
pub use step::{ChildTask, TaskStep};
pub use worker::{StepResult, StepStop, Worker};
