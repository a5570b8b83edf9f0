//! Nodes with the same name on a shared store. The engines use the clocks of the machine, as in the binary, and share a
//! store in memory.

use std::future::Future;
use std::sync::Arc;

use cronhold_core::{DecisionContext, NodeId};
use cronhold_daemon::chance::SystemEntropy;
use cronhold_daemon::clock::{self, SystemClock};
use cronhold_engine::{Engine, EngineError, EngineEvent, EngineObserver, NoPrograms, NodeHandle, NodePorts, Options};
use cronhold_schedule::ZoneRegistry;
use cronhold_store::MemoryStore;
use tokio::sync::Notify;

const NAME: &str = "twin";

/// Waits for a node to be ready.
#[derive(Debug, Default)]
struct Readiness(Notify);

impl EngineObserver for Readiness {
    fn on_event(&self, event: &EngineEvent<'_>) {
        if let EngineEvent::Ready { .. } = event {
            self.0.notify_one();
        }
    }
}

/// A node with that name, its handle, and a notification that it is ready.
fn node(store: &MemoryStore, id: u128, force: bool) -> (Engine, NodeHandle, Arc<Readiness>) {
    let readiness = Arc::new(Readiness::default());
    let ports = NodePorts {
        clock: Arc::new(SystemClock::new().expect("a clock")),
        entropy: Arc::new(SystemEntropy),
        store: Arc::new(store.clone()),
        programs: Arc::new(NoPrograms),
        feed: Arc::clone(&readiness) as _,
    };
    let zones = Arc::new(ZoneRegistry::bundled());
    let zone = zones.get("UTC").expect("a zone");
    let world = DecisionContext::new(zones, "bundled".into(), zone);
    let options = Options { force, ..Options::new(NodeId::from_bits(id), NAME) };
    let (engine, handle) = Engine::new(ports, options, world);
    (engine, handle, readiness)
}

fn block_on<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_io().build().expect("an executor").block_on(test)
}

#[test]
fn duplicate_node_name_is_refused_unless_forced() {
    block_on(async {
        let store = MemoryStore::new(Arc::new(clock::now));
        let (first, _first, is_first_ready) = node(&store, 1, false);
        let rivals = async {
            is_first_ready.0.notified().await;
            let (second, ..) = node(&store, 2, false);
            let other = NodeId::from_bits(1);
            assert_eq!(second.run().await, Err(EngineError::NameTaken { name: NAME.to_owned(), other }));
            let (third, _third, is_third_ready) = node(&store, 3, true);
            tokio::select! {
                ended = third.run() => panic!("a forced node keeps running: {ended:?}"),
                () = is_third_ready.0.notified() => {}
            }
        };
        tokio::select! {
            ended = first.run() => panic!("the node that has the name keeps running: {ended:?}"),
            () = rivals => {}
        }
    });
}

#[test]
fn restarted_node_replaces_its_predecessor() {
    block_on(async {
        let store = MemoryStore::new(Arc::new(clock::now));
        let (first, _first, is_first_ready) = node(&store, 1, false);
        let later = async {
            is_first_ready.0.notified().await;
            let (second, _second, _) = node(&store, 1, false);
            second.run().await
        };
        tokio::select! {
            ended = first.run() => assert_eq!(ended, Ok(()), "it stops without an error"),
            ended = later => panic!("the later one keeps running: {ended:?}"),
        }
    });
}
