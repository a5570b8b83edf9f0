//! The way between a node and programs: tasks go there, reports come back. Reports are carried by one loop of their
//! own, because the node does not take any while it hands out tasks.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cronhold_engine::queue::Queue;
use cronhold_engine::{Clock, Handle, Outside, Task};
use cronhold_programs::Noops;
use cronhold_store::Pending;

/// Reports that are carried in one go.
const REPORTS_MAX: usize = 1_024;

/// Programs of this machine.
pub struct Programs {
    clock: Arc<dyn Clock>,
    noops: Mutex<Noops>,
    /// Rings when there may be a report sooner than was thought.
    bell: Queue<()>,
}

impl Programs {
    /// A machine without programs so far.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, noops: Mutex::default(), bell: Queue::new(1) }
    }

    /// Carries reports to the node, for ever.
    pub async fn carry(&self, node: &Handle) {
        loop {
            let reports = self.noops().take(self.clock.uptime(), REPORTS_MAX);
            if reports.is_empty() {
                self.wait().await;
            }
            for (run, report) in reports {
                node.report(run, report).await;
            }
        }
    }

    async fn wait(&self) {
        let next = self.noops().next();
        let rung = async {
            self.bell.ready().await;
            self.bell.take(1);
        };
        match next.map(|next| next.minus(self.clock.uptime())) {
            Some(wait) => tokio::select! {
                biased;
                () = rung => {}
                () = self.clock.sleep(wait) => {}
            },
            None => rung.await,
        }
    }

    fn noops(&self) -> MutexGuard<'_, Noops> {
        self.noops.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outside for Programs {
    /// Never waits: a task is a line in a table.
    fn perform(&self, task: Task) -> Pending<'_, ()> {
        match task {
            Task::Launch { run, .. } => self.noops().launch(&run, self.clock.uptime()),
            Task::Adopt { run } => self.noops().adopt(&run, self.clock.now(), self.clock.uptime()),
            Task::Stop { run } => self.noops().stop(&run),
            Task::Signal { run, signal } => self.noops().signal(run, signal),
        }
        // A bell that has rung already need not ring twice.
        let _ = self.bell.offer(());
        Box::pin(std::future::ready(()))
    }
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Programs").finish_non_exhaustive()
    }
}
