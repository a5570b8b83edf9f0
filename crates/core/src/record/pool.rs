//! Pools: the active runs of all jobs whose condition `max_running` names the same pool, as one record, so that a limit
//! across jobs is checked by the commit that starts a run. A pool without active runs has no record.

use std::fmt;
use std::sync::Arc;

use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;
use serde::{Deserialize, Serialize};

use super::{ActiveRun, Run};
use crate::ids::RunId;

/// The name of a pool. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolName(Arc<str>);

/// The active runs of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// The name of the pool.
    pub name: PoolName,
    /// The runs that have a program, in the order in which they started.
    pub active: Vec<ActiveRun>,
}

impl PoolName {
    /// The longest name in bytes.
    pub const MAX: usize = 200;

    /// Parses a name of 1 to [`Self::MAX`] bytes without control characters.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if text.is_empty() || text.len() > Self::MAX || text.contains(char::is_control) {
            let message = format!("`{}` cannot be the name of a pool", shortened(text).escape_debug());
            let hint = format!("a name has 1 to {} bytes and no control characters", Self::MAX);
            return Err(TextError::new(0..text.len(), message).hint(hint));
        }
        Ok(Self(text.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PoolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PoolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

cronhold_schedule::stored_as_text!(PoolName);

impl Pool {
    /// The most runs that a pool may have, whatever its size is. This bounds the size of the record.
    pub const ACTIVE_MAX: usize = 1_000;

    /// A pool without runs.
    pub fn new(name: PoolName) -> Self {
        Self { name, active: Vec::new() }
    }

    /// Adds a run, unless the pool has it already.
    pub fn join(&mut self, run: &Run) {
        if !self.contains(run.id) {
            self.active.push(ActiveRun { run: run.id, args: run.args.digest(), target: run.target });
        }
    }

    /// Removes a run.
    pub fn leave(&mut self, run: RunId) {
        self.active.retain(|active| active.run != run);
    }

    /// Whether a run is in the pool.
    pub fn contains(&self, run: RunId) -> bool {
        self.active.iter().any(|active| active.run == run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_printable() {
        for (text, is_valid) in
            [("db", true), ("größe 1/2", true), ("", false), ("a\nb", false), ("a\0", false), (&"x".repeat(201), false)]
        {
            assert_eq!(PoolName::parse(text).is_ok(), is_valid, "{text:?}");
        }
    }
}
