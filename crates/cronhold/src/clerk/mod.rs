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

use cronhold_cli::{Failure, NamedStore, ServedStore, StoreServer};
use cronhold_core::{NodeId, World};
use cronhold_engine::{Clerk, Clock, Entropy, Handle};
use cronhold_schedule::{Instant, Zone};
use cronhold_server::{App, Door, Feed, Listen, Server};
use cronhold_store::{Fault, Query, Store, has_foreign_nodes};
use cronhold_wiring::{Around, StoreUrl};
use tokio::runtime::{Builder, Runtime};

use crate::await_store::unusable;
use crate::chance::SystemEntropy;
use crate::clock::{self, SystemClock};
use crate::outside::VERSION;
use crate::peers;
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
    opened: RefCell<Option<Opened>>,
}

/// A store that is answered for.
struct Opened {
    served: ServedStore,
    store: Arc<dyn Store>,
    /// Whether its URL says that nodes of another kind run the same jobs.
    names_peers: bool,
    clerk: Handle,
    thread: JoinHandle<()>,
    server: Server,
}

/// What is known of a store when it has answered for the first time.
struct Greeting {
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
        let Some(Opened { store, names_peers, clerk, thread, server, .. }) = self.opened.borrow_mut().take() else {
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
    async fn agree(&self, store: &Arc<dyn Store>, clerk: &Handle) -> Result<(), Fault> {
        let zones = Arc::clone(&self.zone_rules.zones);
        peers::agree(Arc::clone(store), clerk.clone(), zones).await.map(drop)
    }

    /// Jobs that only other programs know so far are taken up before something is changed, and where there would be no job
    /// at all without them. What cannot be done now is done by the next node.
    fn take_up_definitions(&self, opened: &Opened) {
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

    fn open(&self, named: &NamedStore<'_>) -> Result<Opened, Failure> {
        let url = StoreUrl::parse(named.url).map_err(|error| Failure::flag(named.origin, error))?;
        if !url.is_shared() {
            let message = format!("{}: an SQLite store is worked on by its daemon alone", named.origin);
            return Err(Failure::usage(message, "ask the daemon: name it with --data or --url"));
        }
        // Whether the store may lose something is for those to decide who run jobs on it.
        let zones = &self.zone_rules.zones;
        let around = Around { accept_loss: true, ..Around::new(Arc::new(clock::now), Arc::clone(zones)) };
        let store = cronhold_wiring::open(&url, around).map_err(|message| Failure::Refused { message, hint: None })?;
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
        greeting: Greeting,
    ) -> Result<Opened, Failure> {
        let no = |error: io::Error| nothing_to_wait_with(&error);
        let clock: Arc<dyn Clock> = {
            let _inside = executor.enter();
            Arc::new(SystemClock::new().map_err(no)?)
        };
        let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
        let ZoneRules { zones, version, .. } = &self.zone_rules;
        let world = World::new(Arc::clone(zones), Arc::clone(version), greeting.zone);
        let (clerk, handle) = Clerk::new(Arc::clone(&store), Arc::clone(&clock), Arc::clone(&entropy), world.clone());
        let (door, token) = Door::private(entropy);
        let feed = Arc::new(Feed::default());
        let app = App {
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
        let listening = Listen { address, ..Listen::default() }.bind();
        let listening = listening.map_err(|error| Failure::Refused { message: error.to_string(), hint: None })?;
        let served = ServedStore { url: listening.url(), token };
        let server = Server::start(listening, Arc::new(app)).map_err(no)?;
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
        Ok(Opened { served, store, names_peers, clerk: handle, thread: thread.map_err(no)?, server })
    }
}

impl StoreServer for AtStore {
    fn serve(&self, named: &NamedStore<'_>) -> Result<ServedStore, Failure> {
        if let Some(opened) = &*self.opened.borrow() {
            return Ok(opened.served.clone());
        }
        let opened = self.open(named)?;
        self.take_up_definitions(&opened);
        Ok(self.opened.borrow_mut().insert(opened).served.clone())
    }

    fn definitions(&self, named: &NamedStore<'_>) -> Result<Vec<(String, String)>, Failure> {
        crate::import::definitions(named, &self.zone_rules.zones)
    }
}

/// Looks whether the store answers, and in which zone its jobs are.
async fn greet(store: &dyn Store, zone_rules: &ZoneRules) -> Result<Greeting, Fault> {
    let now = store.time().await?;
    Ok(Greeting { now, zone: zone::of_jobs(store, &zone_rules.zones).await? })
}

fn executor() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

fn away(fault: &Fault, url: &StoreUrl) -> Failure {
    let message = fault.to_string();
    if fault.is_passing() {
        let hint = format!("look whether the store is there: {url}");
        return Failure::Unreachable { message, hint: Some(hint) };
    }
    unusable(fault)
}

fn nothing_to_wait_with(error: &io::Error) -> Failure {
    let message = format!("the system does not give what is needed to work on a store: {error}");
    Failure::refused(message, "look at the limit of open files (`ulimit -n`)")
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("served", &self.served).finish_non_exhaustive()
    }
}
