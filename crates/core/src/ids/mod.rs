//! Ids of jobs, runs and nodes. They are parsed in one place, so every value of an id type is valid.

mod job_id;
mod run_id;
mod run_ref;

pub use job_id::{AD_HOC_FOLDER, JOB_ID_MAX, JobId};
pub use run_id::{JobUid, NodeId, RunId};
pub use run_ref::{RunNumber, RunRef};
