//! Records when runs become durable, as an observer of the node.

use std::sync::{Arc, Mutex, OnceLock};

use cronhold_core::State;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{Record, Run};
use cronhold_engine::queue::BoundedQueue;
use cronhold_engine::{EngineEvent, EngineObserver};
use cronhold_programs::LocalRunner;
use cronhold_schedule::Instant;
use cronhold_store::lock_mutex;

use crate::clock;

/// Finished runs that may be queued.
const ENDED_MAX: usize = 100_000;

/// Records commits of runs.
#[derive(Debug)]
pub struct RunRecorder {
    /// Starts that became durable: the nominal time, and the time of the event.
    starts: Mutex<Vec<(Instant, Instant)>>,
    /// Finished runs; `None` if nothing reads them.
    ended: Option<BoundedQueue<Arc<Run>>>,
    programs: OnceLock<Arc<LocalRunner>>,
}

impl RunRecorder {
    /// `keeps_ended`: whether finished runs are queued for [`Self::next_ended`].
    pub(super) fn new(keeps_ended: bool) -> Self {
        let ended = keeps_ended.then(|| BoundedQueue::new(ENDED_MAX));
        Self { starts: Mutex::default(), ended, programs: OnceLock::new() }
    }

    /// Passes all events on to the programs of the node.
    pub(super) fn pass_to(&self, programs: Arc<LocalRunner>) {
        let _ = self.programs.set(programs);
    }

    /// Starts that became durable since the last call: the nominal time, and the time at which it was durable.
    pub fn take_starts(&self) -> Vec<(Instant, Instant)> {
        std::mem::take(&mut lock_mutex(&self.starts))
    }

    /// Waits for finished runs, and returns up to `most` of them. Waits forever if the node was set up without them.
    pub async fn next_ended(&self, most: usize) -> Vec<Arc<Run>> {
        match &self.ended {
            Some(ended) => {
                ended.ready().await;
                ended.take(most)
            }
            None => std::future::pending().await,
        }
    }

    /// Finished runs that are queued, up to `most` of them.
    pub fn take_ended(&self, most: usize) -> Vec<Arc<Run>> {
        self.ended.as_ref().map_or_else(Vec::new, |ended| ended.take(most))
    }

    /// Waits for `count` finished runs.
    pub async fn collect_ended(&self, count: usize) -> Vec<Arc<Run>> {
        let mut runs = Vec::new();
        while runs.len() < count {
            runs.extend(self.next_ended(count).await);
        }
        runs
    }
}

impl EngineObserver for RunRecorder {
    fn on_event(&self, event: &EngineEvent<'_>) {
        if let Some(programs) = self.programs.get() {
            programs.on_event(event);
        }
        let EngineEvent::Committed { done, .. } = event else { return };
        for change in &done.changes {
            let RecordChange::Put(Record::Run(run)) = change else { continue };
            if run.state == State::Starting {
                let start = (run.nominal, clock::now());
                lock_mutex(&self.starts).push(start);
            } else if run.state.is_finished()
                && let Some(ended) = &self.ended
            {
                // If the queue is full, the benchmark does not need the run.
                let _ = ended.try_send(Arc::clone(run));
            }
        }
    }
}
