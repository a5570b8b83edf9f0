//! Names of jobs, runs and nodes. A text becomes an id in one place, so that everything that holds an id holds a
//! valid one.

mod job_id;
mod run_id;
mod run_ref;

pub use job_id::{JOB_ID_MAX, JobId};
pub use run_id::{JobUid, NodeId, RunId};
pub use run_ref::{RunNumber, RunRef};
