//! A digest of a job's definition. It stands for the definition where very many jobs are compared, so that they need not
//! be in memory.

use std::fmt;

use cronhold_core::Job;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::write::write_job;

/// A digest of the JSON that [`write_job`] writes. Two jobs with the same digest are equal. Equal jobs have the same
/// digest, unless another version has written the JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DefinitionDigest([u64; 2]);

impl DefinitionDigest {
    /// The digest of a job.
    pub fn new(job: &Job) -> Self {
        Self::of_stored(&write_job(job).to_string())
    }

    /// The digest of a job whose JSON is stored.
    pub fn of_stored(json: &str) -> Self {
        let digest = Sha256::digest(json.as_bytes());
        let half = |from: usize| digest[from..from + 8].iter().fold(0, |half, byte| half << 8 | u64::from(*byte));
        Self([half(0), half(8)])
    }
}

impl fmt::Debug for DefinitionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0[0], self.0[1])
    }
}
