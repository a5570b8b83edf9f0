//! Points at which the daemon kills itself between the steps of a turn: around what its node asks of its ports, so that
//! the engine knows nothing of them. Only a build with debug assertions has this file, and only a daemon that was told
//! of a point has these ports.
//!
//! A turn is known by what it brings: a *claim* lets a run start, a *start* says that its program runs, and an *end*
//! that it is over. A turn that brings two of them is both.

use std::sync::Arc;

use cronhold_core::decision::Change;
use cronhold_core::record::{Record, Run};
use cronhold_core::signal::Signal;
use cronhold_core::{RunId, State};
use cronhold_engine::{Feed, LaunchRequest, News, Ports, ProgramRunner};
use cronhold_keeper::fail;
use cronhold_schedule::Span;
use cronhold_store::{Committed, Pending, Refusal, Store, Unit, Wrapper};

/// The same ports with points around them, if the environment names any point.
pub(crate) fn around(ports: Ports, env: &[(String, String)]) -> Ports {
    if !env.iter().any(|(name, _)| name == fail::VARIABLE) {
        return ports;
    }
    let Ports { store, outside, feed, .. } = ports;
    Ports {
        store: Arc::new(Fragile(store)),
        outside: Arc::new(Fragile(outside)),
        feed: Arc::new(Fragile(feed)),
        ..ports
    }
}

/// A port with points around it.
#[derive(Debug)]
struct Fragile<P>(P);

/// What a commit brings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Brings {
    claim: bool,
    start: bool,
    end: bool,
}

impl Brings {
    fn of<'a>(changes: impl Iterator<Item = &'a Change>) -> Self {
        let mut brings = Self::default();
        for change in changes {
            let Change::Put(Record::Run(run)) = change else { continue };
            brings.claim |= run.state == State::Starting;
            brings.start |= run.state == State::Running;
            brings.end |= run.state.is_finished();
        }
        brings
    }

    /// It is decided, and nothing was sent.
    fn decided(self) {
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

    /// It is durable, and the node has not heard of it.
    fn durable(self) {
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

    /// The node has heard of it, and has done nothing of what it owes.
    fn heard(self) {
        if self.claim {
            fail::point("daemon-claim-heard");
        }
        if self.end {
            fail::point("daemon-end-heard");
        }
    }
}

impl Wrapper for Fragile<Arc<dyn Store>> {
    fn inside(&self) -> &dyn Store {
        &*self.0
    }

    /// A commit that is prepared comes here as well, when it is first looked at.
    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<Committed, Refusal>>> {
        let brings = Brings::of(units.iter().flat_map(|unit| &unit.changes));
        Box::pin(async move {
            brings.decided();
            let results = self.0.commit(units).await;
            // One that was refused is as if it had not been sent.
            if results.iter().all(Result::is_ok) {
                brings.durable();
            }
            results
        })
    }
}

impl ProgramRunner for Fragile<Arc<dyn ProgramRunner>> {
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

    fn signal(&self, run: RunId, signal: Signal) {
        self.0.signal(run, signal);
    }
}

impl Feed for Fragile<Arc<dyn Feed>> {
    fn tell(&self, news: &News<'_>) {
        if let News::Committed { done, .. } = news {
            Brings::of(done.changes.iter()).heard();
        }
        self.0.tell(news);
    }
}
