//! Wrong worlds of programs: those who have them do not do what a task says.

use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::record::Run;
use cronhold_core::signal::Signal;
use cronhold_engine::{LaunchRequest, ProgramRunner};
use cronhold_schedule::Span;

use super::DeliberateBug;
use crate::context::SimContext;
use crate::executor::TaskOwner;

/// No program lives as long as this.
const FOR_EVER: Span = Span::from_secs(1_000_000_000);
/// Longer than a program may start after its commit.
const TARDY: Span = Span::from_secs(15);

/// Whoever has programs, with a mistake.
#[derive(Debug)]
pub(super) struct WrongOutside {
    pub(super) outside: Arc<dyn ProgramRunner>,
    pub(super) how: DeliberateBug,
    pub(super) context: SimContext,
    pub(super) whose: TaskOwner,
}

impl ProgramRunner for WrongOutside {
    fn launch(&self, request: LaunchRequest) {
        match self.how {
            DeliberateBug::Immortal => {
                self.outside.launch(LaunchRequest { kill_at: request.kill_at.map(|_| FOR_EVER), ..request });
            }
            DeliberateBug::Tardy => {
                let (outside, time) = (Arc::clone(&self.outside), self.context.time.clone());
                let kill_at = request.kill_at.map(|kill_at| kill_at.plus(TARDY));
                self.context.executor.spawn(self.whose, async move {
                    time.sleep(TARDY).await;
                    outside.launch(LaunchRequest { launch_by: FOR_EVER, kill_at, ..request });
                });
            }
            _ => self.outside.launch(request),
        }
    }

    fn adopt(&self, run: Arc<Run>) {
        match self.how {
            DeliberateBug::Restarting => {
                self.outside.launch(LaunchRequest { run, fence: None, launch_by: FOR_EVER, kill_at: Some(FOR_EVER) });
            }
            _ => self.outside.adopt(run),
        }
    }

    fn extend(&self, leases: &[(RunId, Span)]) {
        if !matches!(self.how, DeliberateBug::Immortal) {
            self.outside.extend(leases);
        }
    }

    fn stop(&self, run: &Run) {
        self.outside.stop(run);
    }

    fn signal(&self, run: RunId, signal: Signal) {
        self.outside.signal(run, signal);
    }
}
