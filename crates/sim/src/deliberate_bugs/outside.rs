//! A program runner with a deliberate bug.

use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::record::{ActionRecord, Run};
use cronhold_core::signal::Signal;
use cronhold_engine::{LaunchRequest, ProbeRequest, ProgramRunner};
use cronhold_schedule::Span;

use super::DeliberateBug;
use crate::context::SimContext;
use crate::executor::TaskOwner;

/// Longer than any program lives.
const NEVER: Span = Span::from_secs(1_000_000_000);
/// Longer than the maximum delay between commit and launch.
const LAUNCH_DELAY: Span = Span::from_secs(15);

/// A program runner with a deliberate bug.
#[derive(Debug)]
pub(super) struct WrongOutside {
    pub(super) runner: Arc<dyn ProgramRunner>,
    pub(super) bug: DeliberateBug,
    pub(super) context: SimContext,
    pub(super) owner: TaskOwner,
}

impl ProgramRunner for WrongOutside {
    fn launch(&self, request: LaunchRequest) {
        match self.bug {
            DeliberateBug::IgnoredLeases => {
                self.runner.launch(LaunchRequest { kill_at: request.kill_at.map(|_| NEVER), ..request });
            }
            // One launch in four reaches no keeper, and no answer comes.
            DeliberateBug::UnansweredLaunches if request.run.number.0.is_multiple_of(4) => {}
            DeliberateBug::LateLaunches => {
                let (runner, time) = (Arc::clone(&self.runner), self.context.time.clone());
                let kill_at = request.kill_at.map(|kill_at| kill_at.plus(LAUNCH_DELAY));
                self.context.executor.spawn(self.owner, async move {
                    time.sleep(LAUNCH_DELAY).await;
                    runner.launch(LaunchRequest { launch_by: NEVER, kill_at, ..request });
                });
            }
            _ => self.runner.launch(request),
        }
    }

    fn adopt(&self, run: Arc<Run>) {
        match self.bug {
            DeliberateBug::RepeatedLaunches => {
                self.runner.launch(LaunchRequest { run, fence: None, launch_by: NEVER, kill_at: Some(NEVER) });
            }
            DeliberateBug::UnansweredLaunches if run.number.0.is_multiple_of(4) => {}
            _ => self.runner.adopt(run),
        }
    }

    fn extend(&self, leases: &[(RunId, Span)]) {
        if !matches!(self.bug, DeliberateBug::IgnoredLeases) {
            self.runner.extend(leases);
        }
    }

    fn release(&self, run: RunId) {
        self.runner.release(run);
    }

    fn stop(&self, run: &Run) {
        self.runner.stop(run);
    }

    fn signal(&self, run: RunId, signal: Signal) {
        self.runner.signal(run, signal);
    }

    fn deliver(&self, action: Arc<ActionRecord>) {
        self.runner.deliver(action);
    }

    fn probe(&self, request: ProbeRequest) {
        self.runner.probe(request);
    }
}
