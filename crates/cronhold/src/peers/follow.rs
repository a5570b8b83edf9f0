//! The thread that follows what other programs do with what they share with us: it hears their events, and looks at jobs
//! in both places at the start, when either side has changed something, and now and then anyway. It is not the node's,
//! because a look at many jobs takes longer than a run may wait.
//!
//! Three things go on beside each other, so that none makes another late: listening, acting on events, and looking.

use std::io;
use std::sync::Arc;
use std::thread;

use cronhold_core::command::Command;
use cronhold_core::record::{Actor, LockName};
use cronhold_core::{NodeId, RunId};
use cronhold_engine::{Clock, Handle};
use cronhold_schedule::{Instant, Span, Zones};
use cronhold_server::sent_event;
use cronhold_store::{Fault, Store, has_foreign_nodes};
use tokio::sync::{mpsc, oneshot};

use super::bell::{Bell, Wanted};
use super::control::{Control, Heard};
use super::look::{Looked, Looker, Quiet, SHARED_JOBS};
use super::sight::Scope;
use crate::clock::SystemClock;
use crate::job_files::{JobFiles, Shelf};
use crate::log::{Log, Weight};

/// Whoever listens looks this often whether it is on time itself, and whoever looks whether company has come or gone.
const PULSE: Span = Span::from_millis(50);
/// Events that may wait to be acted on; listening waits when there are more.
const EVENTS_MAX: usize = 1_000;
/// One of the nodes looks at all jobs this often, because events can be lost.
const LOOK_EVERY: Span = Span::from_secs(30);
/// Where something could not be done, or somebody else should have done it, it is looked at again after this.
const AGAIN: Span = Span::from_secs(1);
/// How long the lock of whoever looks at all jobs lasts when its holder is not heard of. The node renews it.
const TTL: Span = Span::from_secs(30);
/// How long others must not validate while we do.
const VALIDATION_TTL: Span = Span::from_secs(60);

/// What the thread is made of.
#[derive(Debug)]
pub struct Peers {
    /// The store that is shared.
    pub store: Arc<dyn Store>,
    /// The node that is asked.
    pub node: Handle,
    /// Its id.
    pub this: NodeId,
    /// Zones that definitions can name.
    pub zones: Arc<Zones>,
    /// Where mistakes are shown.
    pub shelf: Arc<Shelf>,
    /// Rings when this node has changed something.
    pub bell: Arc<Bell>,
    /// Where it is said.
    pub log: Log,
}

impl Peers {
    /// Follows for a node with job files.
    pub fn new(
        files: &JobFiles,
        store: &Arc<dyn Store>,
        node: &Handle,
        this: NodeId,
        bell: Arc<Bell>,
        log: &Log,
    ) -> Self {
        let (zones, shelf) = (Arc::clone(&files.world().zones), files.shelf());
        Self { store: Arc::clone(store), node: node.clone(), this, zones, shelf, bell, log: log.clone() }
    }

    /// Follows from now on, and waits until all jobs were looked at for the first time.
    pub async fn begin(self) {
        let log = self.log.clone();
        match self.follow() {
            Ok(None) => {}
            // Whoever looks has ended when nothing is answered, and has said why.
            Ok(Some(looked)) => drop(looked.await),
            Err(error) => {
                log.emit(Weight::Trouble, "foreign_unheard", format!("other programs are not heard: {error}"))
            }
        }
    }

    /// Follows from now on. What is answered comes when all jobs were looked at for the first time; where nothing is
    /// shared there is nothing to follow.
    fn follow(self) -> io::Result<Option<oneshot::Receiver<()>>> {
        if self.store.shared().is_none() {
            return Ok(None);
        }
        let executor = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (ready, is_ready) = oneshot::channel();
        thread::Builder::new().name("peers".to_owned()).spawn(move || {
            executor.block_on(async {
                match SystemClock::new() {
                    Ok(clock) => self.live(&clock, ready).await,
                    Err(error) => self.log.emit(
                        Weight::Trouble,
                        "foreign_unheard",
                        format!("other programs are not heard: {error}"),
                    ),
                }
            });
        })?;
        Ok(Some(is_ready))
    }

    async fn live(self, clock: &SystemClock, ready: oneshot::Sender<()>) {
        let (heard, events) = mpsc::channel(EVENTS_MAX);
        let listening = listen(&*self.store, clock, heard);
        let acting = self.act(events, clock);
        let looking = self.look(clock, ready);
        tokio::join!(listening, acting, looking);
    }

    async fn act(&self, mut events: mpsc::Receiver<Heard>, clock: &SystemClock) {
        let (store, node, zones) = (Arc::clone(&self.store), self.node.clone(), Arc::clone(&self.zones));
        let (bell, log) = (Arc::clone(&self.bell), self.log.clone());
        let control = Control { store, node, this: self.this, zones, bell, log };
        while let Some(heard) = events.recv().await {
            control.act(&heard, clock).await;
        }
    }

    async fn look(&self, clock: &SystemClock, ready: oneshot::Sender<()>) {
        let mut looker = Looker::new(Arc::clone(&self.store), self.node.clone(), Arc::clone(&self.zones));
        let mut wait = self.first_look(&mut looker, clock).await;
        let _ = ready.send(());
        let mut had_company = looker.had_company;
        loop {
            let wanted = tokio::select! {
                biased;
                // Other rules hold for all definitions then.
                () = self.company_changes(had_company, clock) => Some(Wanted { all: true, ..Wanted::default() }),
                wanted = self.bell.rung() => Some(wanted),
                () = clock.sleep(wait) => None,
            };
            self.tell_company(&mut had_company);
            let looked = match wanted {
                Some(wanted) => self.serve(&mut looker, wanted).await,
                // What was to be looked at again is, whoever looks at all jobs.
                None if wait < LOOK_EVERY || self.holds().await => {
                    looker.look(&Scope::All, false, &Quiet::default()).await
                }
                None => Ok(Looked::default()),
            };
            self.shelf.set_shared_mistakes(looker.mistakes());
            wait = self.tell(looked);
        }
    }

    /// Whether nodes of another kind run the same jobs.
    fn has_company(&self) -> bool {
        has_foreign_nodes(&*self.store)
    }

    /// Waits until that is otherwise. Beats find it out.
    async fn company_changes(&self, had_company: bool, clock: &SystemClock) {
        while self.has_company() == had_company {
            clock.sleep(PULSE).await;
        }
    }

    /// Says when that has changed.
    fn tell_company(&self, had_company: &mut bool) {
        let has_company = self.has_company();
        if has_company != *had_company {
            self.log.emit(Weight::Trouble, "foreign_nodes_changed", if has_company { COMPANY } else { ALONE });
            *had_company = has_company;
        }
    }

    /// Looks at all jobs until that has worked, because the node should not begin with what is old.
    async fn first_look(&self, looker: &mut Looker, clock: &SystemClock) -> Span {
        loop {
            let looked = looker.look(&Scope::All, false, &Quiet::default()).await;
            self.shelf.set_shared_mistakes(looker.mistakes());
            let is_over = !looked.as_ref().is_err_and(Fault::is_passing);
            let wait = self.tell(looked);
            if is_over {
                return wait;
            }
            clock.sleep(AGAIN).await;
        }
    }

    async fn serve(&self, looker: &mut Looker, wanted: Wanted) -> Result<Looked, Fault> {
        if let Some(names) = &wanted.validation {
            self.validate(looker, names).await?;
        }
        if wanted.everything == Some(true)
            && let Some(shared) = self.store.shared().filter(|shared| shared.has_foreign_nodes())
        {
            shared.send(&sent_event("pause", "all")).await?;
        }
        let heard = wanted.jobs.iter().filter(|(_, is_heard)| **is_heard);
        let quiet = Quiet {
            jobs: heard.map(|(id, _)| id.clone()).collect(),
            pauses: wanted.pauses_heard || wanted.everything.is_some(),
            has_resumed: wanted.everything == Some(false),
        };
        let mut looked = Looked::default();
        if wanted.all {
            looked = looker.look(&Scope::All, wanted.anew, &quiet).await?;
        } else if !wanted.jobs.is_empty() {
            looked = looker.look(&Scope::Some(wanted.jobs.into_keys().collect()), false, &quiet).await?;
        }
        looked.again |= wanted.soon;
        Ok(looked)
    }

    /// Validates definitions, unless somebody else does.
    async fn validate(&self, looker: &mut Looker, names: &[String]) -> Result<(), Fault> {
        let lock = LockName::parse(VALIDATION).expect("it is short");
        let holder = self.node.random_run_id();
        let hold = Command::Hold { lock: lock.clone(), holder, ttl: VALIDATION_TTL };
        if let Err(refused) = self.node.ask(actor(), hold).await {
            self.log.emit(
                Weight::Usual,
                "foreign_jobs_unvalidated",
                format!("shared jobs are not validated: {refused}"),
            );
            return Ok(());
        }
        let noted = looker.validate(names).await;
        let _ = self.node.ask(actor(), Command::LetGo { lock, holder }).await;
        self.log.emit(
            Weight::Usual,
            "foreign_jobs_validated",
            format!("shared jobs are validated: {} of them newly found wrong", noted?),
        );
        Ok(())
    }

    /// Whether this node is the one that looks at all jobs now and then.
    async fn holds(&self) -> bool {
        let lock = LockName::parse(LOOKER).expect("it is short");
        let holder = RunId::from_key(Instant::EPOCH, &format!("looks at shared jobs on node {}", self.this));
        let holds = self.node.ask(actor(), Command::Hold { lock, holder, ttl: TTL }).await.is_ok();
        if holds {
            // On a node that has nothing else to do this is the first commit after the store was healed.
            self.log.commits();
        }
        holds
    }

    /// Says what came of a look. Answers after which time to look again.
    fn tell(&self, looked: Result<Looked, Fault>) -> Span {
        match looked {
            Ok(looked) => {
                looked
                    .lines
                    .into_iter()
                    .for_each(|(weight, words)| self.log.emit(weight, "foreign_job_reconciled", words));
                looked.notes.into_iter().for_each(|note| self.log.emit(Weight::Usual, "foreign_job_note", note));
                if looked.again { AGAIN } else { LOOK_EVERY }
            }
            Err(fault) if fault.is_passing() => AGAIN,
            Err(fault) => {
                self.log.emit(
                    Weight::Trouble,
                    "foreign_jobs_unreadable",
                    format!("jobs shared with other programs cannot be read: {fault}"),
                );
                LOOK_EVERY
            }
        }
    }
}

/// What is said when nodes of another kind come in while this one runs.
const COMPANY: &str = "nodes of Cronken run the same jobs from now on (peers=cronken)";
/// What is said when there are none any more.
const ALONE: &str = "nodes of Cronken run the same jobs no more (peers=none)";
/// The lock under which definitions are validated; other programs have it too.
const VALIDATION: &str = "#cronhold/validation";
/// The lock of whoever looks at all jobs now and then.
const LOOKER: &str = "#cronhold/shared jobs";

/// Hears events, and notes how old each can be at most: a process that is stopped hears later what came meanwhile.
async fn listen(store: &dyn Store, clock: &SystemClock, heard: mpsc::Sender<Heard>) {
    let Some(shared) = store.shared() else { return };
    let mut events = shared.events();
    let mut since = clock.uptime();
    loop {
        let came = tokio::select! {
            biased;
            came = &mut events => came,
            () = clock.sleep(PULSE) => Vec::new(),
        };
        let is_some = !came.is_empty();
        for text in came {
            if heard.send(Heard { text, since }).await.is_err() {
                return;
            }
        }
        if is_some {
            events = shared.events();
        }
        since = clock.uptime();
    }
}

fn actor() -> Actor {
    Actor::Operator(SHARED_JOBS.to_owned())
}
