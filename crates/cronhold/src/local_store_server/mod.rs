//! Runs verbs on a store without a daemon. For as long as the verb takes, this process does the work of a daemon: a
//! [`CommandExecutor`] executes commands, and an HTTP server offers the API on the loopback interface. The server
//! accepts one token, which is created for this call and never leaves the process. So every verb works as it does with
//! a daemon.

mod files;
mod listen;
mod zone;

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};

use cronhold_cli::{CliError, ForeignJob, NamedStore, ServedStore, StoreServer};
use cronhold_core::{DecisionContext, NodeId};
use cronhold_engine::{CommandExecutor, EntropySource, MachineClock, NodeHandle};
use cronhold_schedule::{Instant, Zone};
use cronhold_server::{AppState, Authenticator, FeedBuffer, HttpServer, ListenOptions, ProgramAccess};
use cronhold_store::{Fault, Query, Store, has_foreign_nodes};
use cronhold_wiring::{StoreContext, StoreUrl};
use tokio::runtime::{Builder, Runtime};

use crate::await_store::unusable;
use crate::chance::SystemEntropy;
use crate::clock::{self, SystemClock};
use crate::daemon::{VERSION, store_failure};
use crate::zone_rules::ZoneRules;
use files::NoFiles;

/// Printed when the store contains nodes of Cronken and its URL does not name them.
const FOREIGN_NODES_NOTE: &str = "note: nodes of Cronken run the same jobs in this namespace; they are notified as \
                                  with `peers=cronken` in the URL";

/// Serves the store that a verb works on. The store is opened when the verb first requests it.
#[derive(Debug)]
pub struct LocalStoreServer {
    zone_rules: ZoneRules,
    /// The servers of a ZooKeeper store whose URL names none.
    zookeeper_servers: Option<String>,
    /// Whether the verb shows changes that other nodes make.
    is_follower: bool,
    /// Whether the verb may change jobs.
    changes_jobs: bool,
    opened: RefCell<Option<OpenedStore>>,
}

/// An open store, with the threads that serve it.
struct OpenedStore {
    served: ServedStore,
    store: Arc<dyn Store>,
    /// Whether the URL says that nodes of another scheduler run the same jobs.
    names_peers: bool,
    commands: NodeHandle,
    thread: JoinHandle<()>,
    server: HttpServer,
}

/// What the first requests to a store return.
struct StoreGreeting {
    /// The store's time.
    now: Instant,
    /// The default zone of schedules.
    zone: Zone,
}

impl LocalStoreServer {
    /// Does not open the store yet.
    pub fn new(
        zone_rules: ZoneRules,
        zookeeper_servers: Option<String>,
        is_follower: bool,
        changes_jobs: bool,
    ) -> Self {
        Self { zone_rules, zookeeper_servers, is_follower, changes_jobs, opened: RefCell::new(None) }
    }

    /// Stops the server and closes the store, if it was opened. If the verb may have changed jobs, this first updates
    /// their definitions for other programs that share the store, as a node does. Prints a failure to `err`; the next
    /// node then updates them.
    pub fn close(&self, err: &mut dyn Write) {
        let Some(OpenedStore { store, names_peers, commands, thread, server, .. }) = self.opened.borrow_mut().take()
        else {
            return;
        };
        if self.changes_jobs && !names_peers && has_foreign_nodes(&*store) {
            let _ = writeln!(err, "{FOREIGN_NODES_NOTE}");
        }
        if let Ok(executor) = executor() {
            if self.changes_jobs
                && store.shared().is_some()
                && let Err(fault) = executor.block_on(self.publish(&store, &commands))
            {
                let _ = writeln!(err, "note: other programs that share the store do not see the change yet: {fault}");
            }
            executor.block_on(commands.stop());
            // If the thread panicked, it has printed why.
            let _ = thread.join();
        }
        server.stop();
    }

    /// Reconciles the jobs with the definitions that are shared with other programs.
    async fn reconcile(&self, store: &Arc<dyn Store>, commands: &NodeHandle) -> Result<(), Fault> {
        let zones = Arc::clone(&self.zone_rules.zones);
        cronhold_cronken::reconcile_once(Arc::clone(store), commands.clone(), zones).await
    }

    /// Reconciles the jobs after the verb, and updates the times that other programs see.
    async fn publish(&self, store: &Arc<dyn Store>, commands: &NodeHandle) -> Result<(), Fault> {
        self.reconcile(store, commands).await?;
        match store.shared() {
            Some(shared) => shared.publish_times().await,
            None => Ok(()),
        }
    }

    /// Adopts jobs that only other programs have defined so far. That happens before the verb changes jobs, and if the
    /// store has no job of its own. If it fails, the next node does it.
    fn adopt_definitions(&self, opened: &OpenedStore) {
        let Ok(executor) = executor() else { return };
        let store = &opened.store;
        let is_empty = || async {
            let page = store.page(&Query::Jobs { after: None }, 1).await;
            page.is_ok_and(|page| page.records.is_empty() && page.unreadable.is_empty())
        };
        executor.block_on(async {
            if store.shared().is_some() && (self.changes_jobs || is_empty().await) {
                self.reconcile(store, &opened.commands).await.ok();
            }
        });
    }

    fn open(&self, named: &NamedStore<'_>) -> Result<OpenedStore, CliError> {
        let url = StoreUrl::parse_with(named.url, self.zookeeper_servers.as_deref());
        let url = url.map_err(|error| CliError::flag(named.origin, error))?;
        if !url.is_shared() {
            let message = format!("{}: only its daemon can use an SQLite store", named.origin);
            return Err(CliError::usage(message, "name the daemon with --data or --url"));
        }
        // Nodes that run jobs check whether the store may lose data; a single command does not.
        let zones = &self.zone_rules.zones;
        let around = StoreContext { accept_loss: true, ..StoreContext::new(Arc::new(clock::now), Arc::clone(zones)) };
        let store = cronhold_wiring::open(&url, around).map_err(|error| store_failure(&error))?;
        let executor = executor().map_err(|error| cannot_serve(&error))?;
        let greeting = executor.block_on(greet(&*store, &self.zone_rules));
        let greeting = greeting.map_err(|fault| unreachable_store(&fault, &url))?;
        self.serve(executor, store, &url, greeting)
    }

    /// Starts the command executor and the server.
    fn serve(
        &self,
        executor: Runtime,
        store: Arc<dyn Store>,
        url: &StoreUrl,
        greeting: StoreGreeting,
    ) -> Result<OpenedStore, CliError> {
        let refused = |error: io::Error| cannot_serve(&error);
        let clock: Arc<dyn MachineClock> = {
            let _inside = executor.enter();
            Arc::new(SystemClock::new().map_err(refused)?)
        };
        let entropy: Arc<dyn EntropySource> = Arc::new(SystemEntropy);
        let ZoneRules { zones, version, .. } = &self.zone_rules;
        let world = DecisionContext::new(Arc::clone(zones), Arc::clone(version), greeting.zone);
        let world = DecisionContext { lease: url.lease().unwrap_or(world.lease), ..world };
        let (command_executor, handle) =
            CommandExecutor::new(Arc::clone(&store), Arc::clone(&clock), Arc::clone(&entropy), world.clone());
        let (authenticator, token) = Authenticator::private(entropy);
        let feed = Arc::new(FeedBuffer::default());
        let app = AppState {
            node: handle.clone(),
            store: Arc::clone(&store),
            clock,
            world: Arc::new(move || world.clone()),
            files: Arc::new(NoFiles),
            feed: Arc::clone(&feed),
            auth: authenticator,
            programs: ProgramAccess::without_socket(),
            // No node has this identity, so the API does not mark any node as the one that answers.
            this: NodeId::from_bits(SystemEntropy.bits()),
            is_ready: Arc::new(AtomicBool::new(true)),
            version: VERSION,
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listening = ListenOptions { address, ..ListenOptions::default() }.bind();
        let listening = listening.map_err(|error| CliError::Refused { message: error.to_string(), hint: None })?;
        let served = ServedStore { url: listening.url(), token };
        let server = HttpServer::start(listening, None, Arc::new(app)).map_err(refused)?;
        let listening = self.is_follower.then(|| listen::listen(Arc::clone(&store), feed, greeting.now));
        let work = async {
            let listening = async {
                match listening {
                    Some(listening) => listening.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = command_executor.run() => {}
                never = listening => match never {},
            }
        };
        let thread = thread::Builder::new().name("store commands".to_owned()).spawn(move || executor.block_on(work));
        let names_peers = url.names_peers();
        Ok(OpenedStore { served, store, names_peers, commands: handle, thread: thread.map_err(refused)?, server })
    }
}

impl StoreServer for LocalStoreServer {
    fn serve(&self, named: &NamedStore<'_>) -> Result<ServedStore, CliError> {
        if let Some(opened) = &*self.opened.borrow() {
            return Ok(opened.served.clone());
        }
        let opened = self.open(named)?;
        self.adopt_definitions(&opened);
        Ok(self.opened.borrow_mut().insert(opened).served.clone())
    }

    fn cronken_jobs(&self, named: &NamedStore<'_>, as_cronken: bool) -> Result<Vec<ForeignJob>, CliError> {
        crate::import::cronken_jobs(named, as_cronken, &self.zone_rules.zones)
    }

    fn castle_jobs(&self, named: &NamedStore<'_>) -> Result<Vec<ForeignJob>, CliError> {
        crate::import::castle_jobs(named, self.zookeeper_servers.as_deref())
    }
}

/// Checks that the store answers, and determines the zone of its jobs.
async fn greet(store: &dyn Store, zone_rules: &ZoneRules) -> Result<StoreGreeting, Fault> {
    let now = store.time().await?;
    Ok(StoreGreeting { now, zone: zone::of_jobs(store, &zone_rules.zones).await? })
}

fn executor() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

fn unreachable_store(fault: &Fault, url: &StoreUrl) -> CliError {
    let message = fault.to_string();
    if fault.is_transient() {
        let hint = format!("check that the store is running: {url}");
        return CliError::Unreachable { message, hint: Some(hint) };
    }
    unusable(fault)
}

fn cannot_serve(error: &io::Error) -> CliError {
    let message = format!("cannot create the threads and timers to use a store: {error}");
    CliError::refused(message, "check the limit of open files (`ulimit -n`)")
}

impl fmt::Debug for OpenedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedStore").field("served", &self.served).finish_non_exhaustive()
    }
}
