//! Points at which the daemon kills itself between the steps of a turn. They wrap the node's ports, so that the engine
//! does not contain them. Only a build with debug assertions has this file, and only a daemon with such a point in its
//! environment uses these ports.
//!
//! The points depend on what a commit contains: a *claim* (a run is starting), a *start* (its program runs), or an
//! *end* (it is final). A commit may contain several of them.

use std::sync::Arc;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{ActionRecord, Record, Run};
use cronhold_core::signal::Signal;
use cronhold_core::{RunId, State};
use cronhold_engine::{EngineEvent, EngineObserver, LaunchRequest, NodePorts, ProbeRequest, ProgramRunner};
use cronhold_keeper::fail;
use cronhold_schedule::Span;
use cronhold_store::{Pending, Store, Unit, UnitReceipt, UnitRefusal, Wrapper};

/// Wraps the ports with points, if the environment names any point.
pub(crate) fn wrap(ports: NodePorts, env: &[(String, String)]) -> NodePorts {
    if !env.iter().any(|(name, _)| name == fail::VARIABLE) {
        return ports;
    }
    let NodePorts { store, programs, feed, .. } = ports;
    NodePorts {
        store: Arc::new(FailingPort(store)),
        programs: Arc::new(FailingPort(programs)),
        feed: Arc::new(FailingPort(feed)),
        ..ports
    }
}

/// A port that is wrapped with points.
#[derive(Debug)]
struct FailingPort<P>(P);

/// What a commit contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CommitContent {
    claim: bool,
    start: bool,
    end: bool,
}

impl CommitContent {
    fn of<'a>(changes: impl Iterator<Item = &'a RecordChange>) -> Self {
        let mut content = Self::default();
        for change in changes {
            let state = match change {
                RecordChange::Put(Record::Run(run)) => run.state,
                RecordChange::Put(Record::SkipSpan(_)) => State::Skipped,
                _ => continue,
            };
            content.claim |= state == State::Starting;
            content.start |= state == State::Running;
            content.end |= state.is_finished();
        }
        content
    }

    /// The commit is decided and not sent.
    fn reach_decided(self) {
        if self.claim {
            fail::point("daemon-claim-decided");
        }
        if self.start {
            fail::point("daemon-start-decided");
        }
        if self.end {
            fail::point("daemon-end-decided");
        }
    }

    /// The commit is durable, and the node does not know that yet.
    fn reach_durable(self) {
        if self.claim {
            fail::point("daemon-claim-durable");
        }
        if self.start {
            fail::point("daemon-start-durable");
        }
        if self.end {
            fail::point("daemon-end-durable");
        }
    }

    /// The node knows that the commit is durable, and has not carried out its effects.
    fn reach_heard(self) {
        if self.claim {
            fail::point("daemon-claim-heard");
        }
        if self.end {
            fail::point("daemon-end-heard");
        }
    }
}

impl Wrapper for FailingPort<Arc<dyn Store>> {
    fn inside(&self) -> &dyn Store {
        &*self.0
    }

    /// A prepared commit also comes here, when it is first polled.
    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        let content = CommitContent::of(units.iter().flat_map(|unit| &unit.changes));
        Box::pin(async move {
            content.reach_decided();
            let results = self.0.commit(units).await;
            // A refused commit is as if it had not been sent.
            if results.iter().all(Result::is_ok) {
                content.reach_durable();
            }
            results
        })
    }
}

impl ProgramRunner for FailingPort<Arc<dyn ProgramRunner>> {
    fn launch(&self, request: LaunchRequest) {
        self.0.launch(request);
        fail::point("daemon-launch-handed-over");
    }

    fn adopt(&self, run: Arc<Run>) {
        self.0.adopt(run);
    }

    fn extend(&self, leases: &[(RunId, Span)]) {
        self.0.extend(leases);
    }

    fn stop(&self, run: &Run) {
        self.0.stop(run);
    }

    fn release(&self, run: RunId) {
        self.0.release(run);
    }

    fn signal(&self, run: RunId, signal: Signal) {
        self.0.signal(run, signal);
    }

    fn deliver(&self, action: Arc<ActionRecord>) {
        self.0.deliver(action);
    }

    fn probe(&self, request: ProbeRequest) {
        self.0.probe(request);
    }
}

impl EngineObserver for FailingPort<Arc<dyn EngineObserver>> {
    fn on_event(&self, news: &EngineEvent<'_>) {
        if let EngineEvent::Committed { done, .. } = news {
            CommitContent::of(done.changes.iter()).reach_heard();
        }
        self.0.on_event(news);
    }
}
