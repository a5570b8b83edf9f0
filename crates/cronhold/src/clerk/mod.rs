//! Verbs on a store without a daemon. In the place of a daemon this process itself answers, for as long as the verb takes:
//! a clerk carries out what is asked, and the API is served on the loopback interface to whoever has a token that was made
//! for this moment and never leaves the process. So every verb works as it does with a daemon.

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
use cronhold_server::{AppState, Authenticator, FeedBuffer, HttpServer, ListenOptions};
use cronhold_store::{Fault, Query, Store, has_foreign_nodes};
use cronhold_wiring::{StoreContext, StoreUrl};
use tokio::runtime::{Builder, Runtime};

use crate::await_store::unusable;
use crate::chance::SystemEntropy;
use crate::clock::{self, SystemClock};
use crate::daemon::{VERSION, store_failure};
use crate::zone_rules::ZoneRules;
use files::NoFiles;

/// What is said when the store knows more than its URL says.
const TAKEN_OVER: &str = "note: nodes of Cronken run the same jobs in this namespace; they are told as if the URL said \
                          `peers=cronken`";

/// Answers for the store that a verb works on. It is opened when the verb first asks for it.
#[derive(Debug)]
pub struct AtStore {
    zone_rules: ZoneRules,
    /// Whether the verb wants to be told what others do.
    is_follower: bool,
    /// Whether it may change jobs.
    changes_jobs: bool,
    opened: RefCell<Option<OpenedStore>>,
}

/// A store that is answered for.
struct OpenedStore {
    served: ServedStore,
    store: Arc<dyn Store>,
    /// Whether its URL says that nodes of another kind run the same jobs.
    names_peers: bool,
    clerk: NodeHandle,
    thread: JoinHandle<()>,
    server: HttpServer,
}

/// What is known of a store when it has answered for the first time.
struct StoreGreeting {
    /// The store's time.
    now: Instant,
    /// The zone of schedules that name none.
    zone: Zone,
}

impl AtStore {
    /// Nothing is opened yet.
    pub fn new(zone_rules: ZoneRules, is_follower: bool, changes_jobs: bool) -> Self {
        Self { zone_rules, is_follower, changes_jobs, opened: RefCell::new(None) }
    }

    /// Ends what was begun, if anything was. After a change of jobs other programs that share the store are shown it in
    /// their form, as a node would do; what could not be shown is said, and the next node does it.
    pub fn close(&self, err: &mut dyn Write) {
        let Some(OpenedStore { store, names_peers, clerk, thread, server, .. }) = self.opened.borrow_mut().take()
        else {
            return;
        };
        if self.changes_jobs && !names_peers && has_foreign_nodes(&*store) {
            let _ = writeln!(err, "{TAKEN_OVER}");
        }
        if let Ok(executor) = executor() {
            if self.changes_jobs
                && store.shared().is_some()
                && let Err(fault) = executor.block_on(self.agree(&store, &clerk))
            {
                let _ = writeln!(err, "note: other programs that share the store know nothing of it yet: {fault}");
            }
            executor.block_on(clerk.stop());
            // A panic in there has been told on the standard error already.
            let _ = thread.join();
        }
        server.stop();
    }

    /// Looks that jobs here and definitions of other programs say the same.
    async fn agree(&self, store: &Arc<dyn Store>, clerk: &NodeHandle) -> Result<(), Fault> {
        let zones = Arc::clone(&self.zone_rules.zones);
        cronhold_cronken::reconcile_once(Arc::clone(store), clerk.clone(), zones).await
    }

    /// Jobs that only other programs know so far are taken up before something is changed, and where there would be no job
    /// at all without them. What cannot be done now is done by the next node.
    fn take_up_definitions(&self, opened: &OpenedStore) {
        let Ok(executor) = executor() else { return };
        let store = &opened.store;
        let is_empty = || async {
            let page = store.page(&Query::Jobs { after: None }, 1).await;
            page.is_ok_and(|page| page.records.is_empty() && page.unreadable.is_empty())
        };
        executor.block_on(async {
            if store.shared().is_some() && (self.changes_jobs || is_empty().await) {
                self.agree(store, &opened.clerk).await.ok();
            }
        });
    }

    fn open(&self, named: &NamedStore<'_>) -> Result<OpenedStore, CliError> {
        let url = StoreUrl::parse(named.url).map_err(|error| CliError::flag(named.origin, error))?;
        if !url.is_shared() {
            let message = format!("{}: an SQLite store is worked on by its daemon alone", named.origin);
            return Err(CliError::usage(message, "ask the daemon: name it with --data or --url"));
        }
        // Whether the store may lose something is for those to decide who run jobs on it.
        let zones = &self.zone_rules.zones;
        let around = StoreContext { accept_loss: true, ..StoreContext::new(Arc::new(clock::now), Arc::clone(zones)) };
        let store = cronhold_wiring::open(&url, around).map_err(|error| store_failure(&error))?;
        let executor = executor().map_err(|error| nothing_to_wait_with(&error))?;
        let greeting = executor.block_on(greet(&*store, &self.zone_rules)).map_err(|fault| away(&fault, &url))?;
        self.serve(executor, store, url.names_peers(), greeting)
    }

    /// Starts the clerk and the server.
    fn serve(
        &self,
        executor: Runtime,
        store: Arc<dyn Store>,
        names_peers: bool,
        greeting: StoreGreeting,
    ) -> Result<OpenedStore, CliError> {
        let no = |error: io::Error| nothing_to_wait_with(&error);
        let clock: Arc<dyn MachineClock> = {
            let _inside = executor.enter();
            Arc::new(SystemClock::new().map_err(no)?)
        };
        let entropy: Arc<dyn EntropySource> = Arc::new(SystemEntropy);
        let ZoneRules { zones, version, .. } = &self.zone_rules;
        let world = DecisionContext::new(Arc::clone(zones), Arc::clone(version), greeting.zone);
        let (clerk, handle) =
            CommandExecutor::new(Arc::clone(&store), Arc::clone(&clock), Arc::clone(&entropy), world.clone());
        let (door, token) = Authenticator::private(entropy);
        let feed = Arc::new(FeedBuffer::default());
        let app = AppState {
            node: handle.clone(),
            store: Arc::clone(&store),
            clock,
            world: Arc::new(move || world.clone()),
            files: Arc::new(NoFiles),
            feed: Arc::clone(&feed),
            door,
            // No node has this identity, so that none of them is the one that answers.
            this: NodeId::from_bits(SystemEntropy.bits()),
            is_ready: Arc::new(AtomicBool::new(true)),
            version: VERSION,
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listening = ListenOptions { address, ..ListenOptions::default() }.bind();
        let listening = listening.map_err(|error| CliError::Refused { message: error.to_string(), hint: None })?;
        let served = ServedStore { url: listening.url(), token };
        let server = HttpServer::start(listening, Arc::new(app)).map_err(no)?;
        let listening = self.is_follower.then(|| listen::listen(Arc::clone(&store), feed, greeting.now));
        let work = async {
            let listening = async {
                match listening {
                    Some(listening) => listening.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = clerk.run() => {}
                never = listening => match never {},
            }
        };
        let thread = thread::Builder::new().name("clerk".to_owned()).spawn(move || executor.block_on(work));
        Ok(OpenedStore { served, store, names_peers, clerk: handle, thread: thread.map_err(no)?, server })
    }
}

impl StoreServer for AtStore {
    fn serve(&self, named: &NamedStore<'_>) -> Result<ServedStore, CliError> {
        if let Some(opened) = &*self.opened.borrow() {
            return Ok(opened.served.clone());
        }
        let opened = self.open(named)?;
        self.take_up_definitions(&opened);
        Ok(self.opened.borrow_mut().insert(opened).served.clone())
    }

    fn cronken_jobs(&self, named: &NamedStore<'_>, as_cronken: bool) -> Result<Vec<ForeignJob>, CliError> {
        crate::import::cronken_jobs(named, as_cronken, &self.zone_rules.zones)
    }
}

/// Looks whether the store answers, and in which zone its jobs are.
async fn greet(store: &dyn Store, zone_rules: &ZoneRules) -> Result<StoreGreeting, Fault> {
    let now = store.time().await?;
    Ok(StoreGreeting { now, zone: zone::of_jobs(store, &zone_rules.zones).await? })
}

fn executor() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

fn away(fault: &Fault, url: &StoreUrl) -> CliError {
    let message = fault.to_string();
    if fault.is_transient() {
        let hint = format!("look whether the store is there: {url}");
        return CliError::Unreachable { message, hint: Some(hint) };
    }
    unusable(fault)
}

fn nothing_to_wait_with(error: &io::Error) -> CliError {
    let message = format!("the system does not give what is needed to work on a store: {error}");
    CliError::refused(message, "look at the limit of open files (`ulimit -n`)")
}

impl fmt::Debug for OpenedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedStore").field("served", &self.served).finish_non_exhaustive()
    }
}
