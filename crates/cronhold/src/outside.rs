//! The way between a node and programs: tasks go there, reports come back. Reports are carried by one loop of their
//! own, because the node does not take any while it hands out tasks.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cronhold_core::RunId;
use cronhold_core::decision::Change;
use cronhold_core::record::{Record, Run, Work, Written};
use cronhold_engine::queue::Queue;
use cronhold_engine::{Clock, Feed, Handle, News, Outside, Task};
use cronhold_keeper::client::{Bell, Heard, Party};
use cronhold_keeper::{FromKeeper, ToKeeper, fail};
use cronhold_programs::launch::Surroundings;
use cronhold_programs::{Due, Finish, Noops, Processes};
use cronhold_store::Pending;

use crate::log::{Log, Weight};

/// Of the daemon, and of the keepers that it starts.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Reports that are carried in one go.
const REPORTS_MAX: usize = 1_024;

/// Programs of this machine.
pub struct Programs {
    clock: Arc<dyn Clock>,
    noops: Mutex<Noops>,
    processes: Mutex<Processes>,
    surroundings: Surroundings,
    log: Log,
    /// Rings when there may be a report sooner than was thought.
    reports: Queue<()>,
    /// Rings when there may be an output to be stored.
    outputs: Queue<()>,
    /// Rings when the node has handed out tasks for the keeper.
    tasks: Queue<()>,
    /// Rings when there may be something to be said to the keeper.
    keeper: Bell,
}

impl Programs {
    /// A machine without programs so far.
    pub fn new(clock: Arc<dyn Clock>, surroundings: Surroundings, log: Log) -> io::Result<Self> {
        Ok(Self {
            clock,
            noops: Mutex::default(),
            processes: Mutex::default(),
            surroundings,
            log,
            reports: Queue::new(1),
            outputs: Queue::new(1),
            tasks: Queue::new(1),
            keeper: Bell::new()?,
        })
    }

    /// Carries tasks from the node and reports to it, for ever.
    pub async fn carry(&self, node: &Handle) {
        tokio::join!(self.carry_tasks(), self.carry_reports(node));
    }

    /// Has the keeper told when the node has handed out all it has for now: what comes together is written to the keeper's
    /// journal together, and its programs start sooner.
    async fn carry_tasks(&self) {
        loop {
            self.tasks.ready().await;
            self.tasks.take(1);
            self.keeper.ring();
        }
    }

    async fn carry_reports(&self, node: &Handle) {
        loop {
            let uptime = self.clock.uptime();
            if self.processes().part(uptime) {
                self.keeper.ring();
            }
            let mut reports = self.noops().take(uptime, REPORTS_MAX);
            reports.extend(self.processes().take(uptime, REPORTS_MAX));
            if reports.is_empty() {
                self.wait().await;
            }
            for (run, report) in reports {
                node.report(run, report).await;
            }
        }
    }

    /// What rings when there is something to be said to the keeper.
    pub fn keeper_bell(&self) -> &Bell {
        &self.keeper
    }

    /// How many programs the keeper runs for this node.
    pub fn running(&self) -> usize {
        self.processes().running().count()
    }

    /// Whether the keeper runs any.
    pub(crate) fn has_running(&self) -> bool {
        self.processes().running().next().is_some()
    }

    /// The runs whose programs the keeper runs, in order.
    pub(crate) fn running_runs(&self) -> Vec<RunId> {
        self.processes().running().collect()
    }

    /// Whether a run has a process.
    pub(crate) fn has(&self, run: RunId) -> bool {
        self.processes().has(run)
    }

    /// Whether every run whose process is not known here is over or was never started: the keeper has listed what it
    /// has, and the node has asked for what it wants.
    pub(crate) fn has_all(&self) -> bool {
        self.processes().has_all()
    }

    /// Whether no earlier life can have stored anything of a run's process.
    pub(crate) fn is_new(&self, run: RunId) -> bool {
        self.processes().is_new(run)
    }

    /// Programs that have ended and whose outputs have to be stored.
    pub(crate) fn take_finishing(&self, most: usize) -> Vec<Finish> {
        self.processes().take_finishing(most)
    }

    /// The output of a program that has ended is stored.
    pub(crate) fn written(&self, run: RunId, written: Written) {
        self.processes().written(run, written);
        self.ring(&self.reports);
    }

    /// Waits until there may be an output to be stored.
    pub(crate) async fn output_rung(&self) {
        self.outputs.ready().await;
        self.outputs.take(1);
    }

    /// Wakes whoever stores outputs.
    pub(crate) fn ring_outputs(&self) {
        self.ring(&self.outputs);
    }

    async fn wait(&self) {
        let next = self.noops().next().into_iter().chain(self.processes().due()).min();
        let rung = async {
            self.reports.ready().await;
            self.reports.take(1);
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

    fn ring(&self, bell: &Queue<()>) {
        // A bell that has rung already need not ring twice.
        let _ = bell.offer(());
    }

    fn noops(&self) -> MutexGuard<'_, Noops> {
        self.noops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn processes(&self) -> MutexGuard<'_, Processes> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn perform_process(&self, task: Task) {
        match task {
            Task::Launch { run, fence, launch_by, kill_at } => {
                fail::point("daemon-before-launch");
                self.processes().launch(run, fence, launch_by, kill_at);
            }
            Task::Extend { leases } => self.processes().extend(&leases),
            Task::Adopt { run } => self.processes().adopt(run),
            Task::Stop { run } => self.processes().stop(&run),
            Task::Signal { run, signal } => self.processes().signal(run, signal),
        }
        self.ring(&self.tasks);
        // A program that is taken up may be found to have ended.
        self.ring(&self.outputs);
    }

    fn perform_noop(&self, task: Task) {
        match task {
            Task::Launch { run, kill_at, .. } => self.noops().launch(&run, kill_at, self.clock.uptime()),
            Task::Adopt { run } => self.noops().adopt(&run, self.clock.now(), self.clock.uptime()),
            Task::Stop { run } => self.noops().stop(&run),
            Task::Signal { run, signal } => self.noops().signal(run, signal),
            Task::Extend { leases } => self.noops().extend(&leases, self.clock.uptime()),
        }
    }
}

impl Outside for Programs {
    /// Never waits: a task is a line in a table.
    fn perform(&self, task: Task) -> Pending<'_, ()> {
        let is_process = match &task {
            Task::Launch { run, .. } | Task::Adopt { run } | Task::Stop { run } => is_process(run),
            Task::Signal { run, .. } => self.processes().has(*run),
            // They may be of either kind.
            Task::Extend { leases } => {
                self.noops().extend(leases, self.clock.uptime());
                true
            }
        };
        if is_process {
            self.perform_process(task);
        } else {
            self.perform_noop(task);
        }
        self.ring(&self.reports);
        Box::pin(std::future::ready(()))
    }
}

impl Feed for Programs {
    /// What is stored of a run need not be remembered by the keeper.
    fn tell(&self, news: &News<'_>) {
        match news {
            News::Committed { done, .. } => {
                let mut over = done.changes.iter().filter_map(|change| match change {
                    Change::Put(Record::Run(run)) if run.state.is_finished() && is_process(run) => Some(run.id),
                    _ => None,
                });
                let Some(first) = over.next() else { return };
                let mut processes = self.processes();
                processes.settled(first);
                over.for_each(|run| processes.settled(run));
            }
            // Nothing is left to be said of it, so the keeper need not remember it.
            News::Known(run) => self.processes().settled(*run),
            News::Ready { .. } => {
                self.processes().ready();
                self.say_words();
            }
            _ => return,
        }
        self.ring(&self.tasks);
    }
}

impl Party for Programs {
    fn next(&self) -> Option<ToKeeper> {
        loop {
            // Secrets are read while nobody waits for the table.
            let due = self.processes().next(self.clock.uptime())?;
            let (run, launch) = match due {
                Due::Say(message) => {
                    if matches!(message, ToKeeper::Forget { .. }) {
                        fail::point("daemon-before-forget");
                    }
                    return Some(message);
                }
                Due::Launch { run, fence, launch_by, kill_at } => {
                    (run.id, self.surroundings.launch(&run, fence, launch_by, kill_at))
                }
            };
            match launch {
                Ok(launch) => return Some(ToKeeper::Launch(Box::new(launch))),
                Err(why) => {
                    self.processes().unlaunchable(run, why);
                    self.ring(&self.reports);
                }
            }
        }
    }

    fn hear(&self, news: Heard) {
        match news {
            Heard::Connected { version, pid, warnings } => {
                let is_other = version != VERSION;
                self.processes().connected(is_other);
                let plan = if is_other {
                    format!("; it makes room for {VERSION} when no program runs")
                } else {
                    String::new()
                };
                self.log.say(Weight::Usual, format!("keeper {version}, pid {pid}{plan}"));
                for warning in warnings {
                    self.log.say(Weight::Usual, format!("keeper: {warning}"));
                }
            }
            Heard::Said(said) => {
                match said {
                    FromKeeper::Started { .. } => fail::point("daemon-before-running"),
                    FromKeeper::Ended { .. } => fail::point("daemon-before-report"),
                    FromKeeper::Hello { .. } | FromKeeper::Listed { .. } | FromKeeper::Refused { .. } => {}
                }
                self.processes().hear(said);
            }
            Heard::Away(why) => {
                if self.processes().away(&why) {
                    self.log.say(Weight::Trouble, format!("the keeper {why}"));
                }
            }
        }
        self.say_words();
        self.ring(&self.reports);
        self.ring(&self.outputs);
    }
}

impl Programs {
    fn say_words(&self) {
        let words = self.processes().take_words();
        for (is_trouble, text) in words {
            self.log.say(if is_trouble { Weight::Trouble } else { Weight::Usual }, text);
        }
    }
}

fn is_process(run: &Run) -> bool {
    matches!(run.work, Some(Work::Process(_)))
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Programs").finish_non_exhaustive()
    }
}
