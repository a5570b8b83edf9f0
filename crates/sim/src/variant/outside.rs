//! Wrong worlds of programs: those who have them do not do what a task says.

use std::sync::Arc;

use cronhold_engine::{Outside, Task};
use cronhold_schedule::Span;
use cronhold_store::Pending;

use super::Variant;
use crate::executor::Whose;
use crate::stage::Stage;

/// No program lives as long as this.
const FOR_EVER: Span = Span::from_secs(1_000_000_000);
/// Longer than a program may start after its commit.
const TARDY: Span = Span::from_secs(15);

/// Whoever has programs, with a mistake.
#[derive(Debug)]
pub(super) struct WrongOutside {
    pub(super) outside: Arc<dyn Outside>,
    pub(super) how: Variant,
    pub(super) stage: Stage,
    pub(super) whose: Whose,
}

impl Outside for WrongOutside {
    fn perform(&self, task: Task) -> Pending<'_, ()> {
        match (self.how, task) {
            (Variant::Immortal, Task::Launch { run, fence, launch_by, kill_at }) => {
                let kill_at = kill_at.map(|_| FOR_EVER);
                self.outside.perform(Task::Launch { run, fence, launch_by, kill_at })
            }
            (Variant::Immortal, Task::Extend { .. }) => Box::pin(async {}),
            (Variant::Restarting, Task::Adopt { run }) => {
                self.outside.perform(Task::Launch { run, fence: None, launch_by: FOR_EVER, kill_at: Some(FOR_EVER) })
            }
            (Variant::Tardy, Task::Launch { run, fence, kill_at, .. }) => {
                let (outside, time) = (Arc::clone(&self.outside), self.stage.time.clone());
                let kill_at = kill_at.map(|kill_at| kill_at.plus(TARDY));
                self.stage.executor.spawn(self.whose, async move {
                    time.sleep(TARDY).await;
                    outside.perform(Task::Launch { run, fence, launch_by: FOR_EVER, kill_at }).await;
                });
                Box::pin(async {})
            }
            (_, task) => self.outside.perform(task),
        }
    }
}
