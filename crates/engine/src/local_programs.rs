//! The runs whose programs this node has requested, and the leases of those programs. The two change together: a program
//! that the node no longer knows must not have its lease extended.

use std::collections::BTreeSet;

use cronhold_core::RunId;
use cronhold_core::record::Run;
use cronhold_schedule::Span;

use crate::heartbeater::Heartbeater;

/// The runs whose programs were requested since the node has started.
#[derive(Debug)]
pub(crate) struct LocalPrograms {
    runs: BTreeSet<RunId>,
    heartbeater: Heartbeater,
}

impl LocalPrograms {
    pub(crate) fn new(heartbeater: Heartbeater) -> Self {
        Self { runs: BTreeSet::new(), heartbeater }
    }

    /// Adds the program of a run that was committed by a request sent at an uptime. Returns the uptime at which the
    /// program has to be killed unless its lease is extended; `None` if it has no lease.
    pub(crate) fn launch(&mut self, run: &Run, sent: Span) -> Option<Span> {
        self.runs.insert(run.id);
        self.heartbeater.grant_lease(run, sent)
    }

    /// Adds a program that an earlier process of this node has started. Its lease is extended with the next heartbeat.
    pub(crate) fn adopt(&mut self, run: &Run) {
        self.runs.insert(run.id);
        self.heartbeater.adopt_lease(run);
    }

    /// Removes the program of a run and its lease. Returns whether there was one.
    pub(crate) fn remove(&mut self, run: RunId) -> bool {
        let was_here = self.runs.remove(&run);
        if was_here {
            self.heartbeater.end_lease(run);
        }
        was_here
    }

    /// Whether the program of a run was requested here.
    pub(crate) fn contains(&self, run: RunId) -> bool {
        self.runs.contains(&run)
    }

    /// The number of programs.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// The runs that have a program here.
    pub(crate) fn runs(&self) -> &BTreeSet<RunId> {
        &self.runs
    }
}
