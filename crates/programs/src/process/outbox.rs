//! Messages that wait to be sent to the keeper. Messages that depend on the state of a process when they are sent are
//! kept as run ids; [`super::Processes`] turns them into messages.

use std::collections::{BTreeSet, VecDeque};

use cronhold_core::RunId;
use cronhold_core::signal::Signal;
use cronhold_keeper::{RunKey, ToKeeper};
use cronhold_schedule::Span;

/// Runs in one message that lets the keeper forget them.
const FORGET_MAX: usize = 1_000;
/// Stops and signals that may wait; beyond that signals are dropped. There are at most as many stops as runs.
const CONTROLS_MAX: usize = 100_000;

/// Messages to the keeper, by kind.
#[derive(Debug, Default)]
pub(super) struct KeeperOutbox {
    /// Runs whose leases were extended.
    leases: BTreeSet<RunId>,
    /// Stops and signals, in the order of the node's requests.
    controls: VecDeque<(RunId, ToKeeper)>,
    /// Runs to be launched.
    launches: VecDeque<RunId>,
    /// Runs that the keeper need not remember.
    forget: Vec<RunKey>,
}

impl KeeperOutbox {
    pub(super) fn launch(&mut self, run: RunId) {
        self.launches.push_back(run);
    }

    pub(super) fn extend(&mut self, run: RunId) {
        self.leases.insert(run);
    }

    pub(super) fn stop(&mut self, run: RunId, (signal, grace): (Signal, Span)) {
        let (signal, grace) = (signal.number(), grace.micros());
        self.controls.push_back((run, ToKeeper::Stop { run: RunKey(run.bits()), signal, grace }));
    }

    pub(super) fn signal(&mut self, run: RunId, signal: Signal) {
        if self.controls.len() < CONTROLS_MAX {
            let message = ToKeeper::Signal { run: RunKey(run.bits()), signal: signal.number() };
            self.controls.push_back((run, message));
        }
    }

    pub(super) fn forget(&mut self, run: RunId) {
        self.forget.push(RunKey(run.bits()));
    }

    pub(super) fn next_lease(&mut self) -> Option<RunId> {
        self.leases.pop_first()
    }

    pub(super) fn next_control(&mut self) -> Option<(RunId, ToKeeper)> {
        self.controls.pop_front()
    }

    pub(super) fn next_launch(&mut self) -> Option<RunId> {
        self.launches.pop_front()
    }

    /// Up to [`FORGET_MAX`] runs in one message; `None` if there are none.
    pub(super) fn next_forget(&mut self) -> Option<ToKeeper> {
        let runs: Vec<RunKey> = self.forget.drain(..self.forget.len().min(FORGET_MAX)).collect();
        (!runs.is_empty()).then_some(ToKeeper::Forget { runs })
    }
}
