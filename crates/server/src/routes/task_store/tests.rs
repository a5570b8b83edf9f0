//! The conformance suite for tasks over the API: a worker's store, a real server, and SQLite behind it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use cronhold_api::client::{CallerOptions, DaemonAddress};
use cronhold_core::NodeId;
use cronhold_core::task::{TaskAct, TaskId, TaskKey, TaskTarget, TaskUnit};
use cronhold_engine::{CommandExecutor, EntropySource, MachineClock};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::conformance::block_on;
use cronhold_store::conformance::tasks::TaskSubject;
use cronhold_store::tasks::{TaskStore, TaskUnitError};
use cronhold_store::{Fault, Pending, Store, lock_mutex};
use cronhold_store_sqlite::{Options, SqliteStore};
use cronhold_worker::RemoteTaskStore;

use crate::testing::{BrokenFiles, FixedEntropy, START, ServerScratchDir, world};
use crate::{AppState, Authenticator, FeedBuffer, HttpServer, ListenOptions, ProgramAccess};

/// A clock that a case advances.
#[derive(Debug, Clone)]
struct SetClock(Arc<AtomicI64>);

impl MachineClock for SetClock {
    fn now(&self) -> Instant {
        Instant::from_micros(self.0.load(Ordering::Relaxed))
    }

    fn uptime(&self) -> Span {
        self.now().since(START)
    }

    fn sleep(&self, _: Span) -> Pending<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// A daemon's server, and what its client needs.
struct ServedTasks {
    server: HttpServer,
    token: String,
}

struct TaskServer {
    clock: SetClock,
    served: Mutex<Option<ServedTasks>>,
    scratch: ServerScratchDir,
}

impl TaskServer {
    fn serve(&self) -> ServedTasks {
        let clock = self.clock.clone();
        let options =
            Options { clock: Arc::new(move || clock.now()), zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
        let opened = SqliteStore::open(self.scratch.path().join("cronhold.db"), options);
        serve(Arc::new(opened.expect("it can be opened")), self.clock.clone())
    }
}

fn serve(store: Arc<dyn Store>, clock: SetClock) -> ServedTasks {
    let clock: Arc<dyn MachineClock> = Arc::new(clock);
    let entropy: Arc<dyn EntropySource> = Arc::new(FixedEntropy::default());
    let (_, node) = CommandExecutor::new(Arc::clone(&store), Arc::clone(&clock), Arc::clone(&entropy), world());
    let (auth, token) = Authenticator::private(entropy);
    let app = AppState {
        node,
        store,
        clock,
        world: Arc::new(world),
        files: Arc::new(BrokenFiles),
        feed: Arc::new(FeedBuffer::default()),
        auth,
        programs: ProgramAccess::without_socket(),
        this: NodeId::from_bits(7),
        is_ready: Arc::new(AtomicBool::new(true)),
        version: "1.2.3",
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listening = ListenOptions { address, ..ListenOptions::default() }.bind().expect("bound");
    ServedTasks { server: HttpServer::start(listening, None, Arc::new(app)).expect("a thread"), token }
}

fn remote(served: &ServedTasks, token: &str) -> Arc<dyn TaskStore> {
    let address = DaemonAddress::parse(&format!("http://{}", served.server.address())).expect("an address");
    let caller = CallerOptions { address, local: None, token: Some(token.to_owned()), user: None };
    Arc::new(RemoteTaskStore::new(caller).expect("a thread"))
}

impl TaskSubject for TaskServer {
    fn store(&self) -> Arc<dyn TaskStore> {
        let mut served = lock_mutex(&self.served);
        let served = served.get_or_insert_with(|| self.serve());
        remote(served, &served.token)
    }

    fn pass(&self, span: Span) {
        self.clock.0.fetch_add(i64::try_from(span.micros()).expect("a short span"), Ordering::Relaxed);
    }

    fn reopen(&self) -> Arc<dyn TaskStore> {
        drop(lock_mutex(&self.served).take());
        self.store()
    }
}

fn server() -> TaskServer {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let clock = SetClock(Arc::new(AtomicI64::new(START.micros())));
    TaskServer { clock, served: Mutex::default(), scratch: ServerScratchDir::new(&format!("tasks-{number}")) }
}

cronhold_store::task_conformance_tests!(server);

fn commit(store: &dyn TaskStore) -> Option<TaskUnitError> {
    let act = TaskAct::Delete { task: TaskTarget::Id(TaskId::FIRST) };
    block_on(store.commit(vec![TaskUnit::request(vec![act])])).remove(0).err()
}

#[test]
fn lost_daemon_is_a_transient_fault() {
    let subject = server();
    let store = subject.store();
    assert!(matches!(commit(&*store), Some(TaskUnitError::Refused(_))), "there is no such task");
    let served = lock_mutex(&subject.served).take().expect("it runs");
    let ServedTasks { server, .. } = served;
    server.stop();
    let fault = commit(&*store);
    assert!(matches!(fault, Some(TaskUnitError::Fault(Fault::Unavailable(_)))), "{fault:?}");
    let found = block_on(store.find(&TaskKey::Id(TaskId::FIRST)));
    assert!(matches!(found, Err(Fault::Unavailable(_))), "{found:?}");
}

#[test]
fn foreign_caller_is_refused_for_good() {
    let subject = server();
    drop(subject.store());
    let served = lock_mutex(&subject.served);
    let fault = commit(&*remote(served.as_ref().expect("it runs"), "wrong"));
    assert!(matches!(fault, Some(TaskUnitError::Fault(Fault::Permanent(_)))), "{fault:?}");
}

/// A server that reads a request and closes the connection may have carried it out.
#[test]
fn lost_reply_leaves_a_change_unknown() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = DaemonAddress::parse(&format!("http://{}", listener.local_addr().expect("bound"))).expect("one");
    let closing = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut bytes = [0; 64];
            let _ = std::io::Read::read(&mut stream, &mut bytes);
        }
    });
    let caller = CallerOptions { address, local: None, token: None, user: None };
    let store = RemoteTaskStore::new(caller).expect("a thread");
    let fault = commit(&store);
    assert!(matches!(fault, Some(TaskUnitError::Fault(Fault::OutcomeUnknown(_)))), "{fault:?}");
    let found = block_on(store.find(&TaskKey::Id(TaskId::FIRST)));
    assert!(matches!(found, Err(Fault::Unavailable(_))), "it can be read again: {found:?}");
    closing.join().expect("it has served both");
}
