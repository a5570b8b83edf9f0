//! Programs of this machine as the engine's port. The node's requests go into the tables, the keeper client's thread
//! takes messages out of them and puts events in, and a separate loop carries reports to the node, because the node
//! takes no reports while it sends requests.

mod keeper_messages;
mod plugin_messages;
mod report_queue;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use cronhold_core::RunId;
use cronhold_core::command::ProgramReport;
use cronhold_core::decision::RecordChange;
use cronhold_core::job::ActionKind;
use cronhold_core::plugin::PluginProgress;
use cronhold_core::record::{ActionRecord, OutputSummary, Record, ResolvedProbe, ResolvedProgram, Run};
use cronhold_core::signal::Signal;
use cronhold_engine::{
    EngineEvent, EngineObserver, LaunchRequest, MachineClock, NodeHandle, ProbeRequest, ProgramRunner,
};
use cronhold_keeper::client::{Wakeup, runs_in_journal};
use cronhold_keeper::{RunKey, fail};
use cronhold_schedule::Span;
use cronhold_store::lock_mutex;
use cronhold_store::tasks::TaskStore;
use tokio::sync::Notify;

use self::report_queue::ReportQueue;
use crate::command_actions::CommandActions;
use crate::delivery::{DeliveryPool, DeliveryReport, MailSettings, ReportFn, Sender};
use crate::event::{EventObserver, ProgramEvent};
use crate::host_env::HostEnv;
use crate::http::HttpClient;
use crate::noop::Noops;
use crate::output::SecretMask;
use crate::plugin::PluginSpools;
use crate::probes::{CommandProbes, ProbeReport, ProbeReportFn, ThreadProbes};
use crate::process::{KEEPER_PENDING, Processes, UnstoredOutput};
use crate::publisher::MessagePublisher;
use crate::service::{ServicePrograms, is_service};
use crate::task_programs::{TaskPrograms, is_task};

/// How long the keeper's journal may take to be read. A launch that it cannot be asked about may have been carried out.
const JOURNAL_WAIT: Span = Span::from_secs(5);

/// Reports that are taken from a table at once.
const REPORTS_MAX: usize = 1_024;

/// Runs the programs of this machine.
pub struct LocalRunner {
    version: String,
    clock: Arc<dyn MachineClock>,
    host_env: HostEnv,
    observer: EventObserver,
    noops: Mutex<Noops>,
    processes: Mutex<Processes>,
    services: ServicePrograms,
    tasks: TaskPrograms,
    /// There may be a report earlier than expected.
    report_wakeup: Arc<Notify>,
    /// There may be an output to store.
    output_wakeup: Arc<Notify>,
    /// The node has sent requests for the keeper.
    request_wakeup: Notify,
    /// There may be a message for the keeper.
    keeper_wakeup: Wakeup,
    /// Whether the keeper can start programs may have changed.
    problem_wakeup: Notify,
    /// Whether the node has been told that the keeper works or fails.
    is_keeper_known: AtomicBool,
    /// There may be a launch whose answer has a deadline.
    launch_wakeup: Notify,
    /// The data directory, with the keeper's journal.
    data: PathBuf,
    /// Sends webhooks and mails.
    deliveries: DeliveryPool,
    commands: Mutex<CommandActions>,
    /// Publishes messages.
    publisher: MessagePublisher,
    delivery_reports: Arc<ReportQueue<DeliveryReport>>,
    /// Looks at files for waiting runs.
    thread_probes: ThreadProbes,
    command_probes: Mutex<CommandProbes>,
    probe_reports: Arc<ReportQueue<ProbeReport>>,
    /// Reads the messages of plug-ins.
    plugins: PluginSpools,
    progress_reports: ReportQueue<(RunId, PluginProgress)>,
}

/// How long a start waits for the keeper.
const KEEPER_WAIT: Span = Span::from_secs(5);
const KEEPER_POLL: Span = Span::from_millis(5);

impl LocalRunner {
    /// A runner without programs. Keepers of another version than `version` are replaced.
    pub fn new(
        version: &str,
        clock: Arc<dyn MachineClock>,
        host_env: HostEnv,
        observer: EventObserver,
        data: PathBuf,
        mail: MailSettings,
    ) -> io::Result<Self> {
        let delivery_reports = Arc::new(ReportQueue::default());
        let reports = Arc::clone(&delivery_reports);
        let report: ReportFn = Arc::new(move |report| reports.push(report));
        let http = Arc::new(HttpClient::new(Arc::clone(&clock)));
        let sender = Sender::new(host_env.clone(), mail, Arc::clone(&http));
        let deliveries = DeliveryPool::new(sender, Arc::clone(&clock), report);
        let probe_reports = Arc::new(ReportQueue::default());
        let reports = Arc::clone(&probe_reports);
        let report: ProbeReportFn = Arc::new(move |report| reports.push(report));
        let thread_probes = ThreadProbes::new(Arc::clone(&clock), Arc::clone(&http), host_env.clone(), report);
        let (report_wakeup, output_wakeup) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (notify_report, notify_output) = (Arc::clone(&report_wakeup), Arc::clone(&output_wakeup));
        let notify = Box::new(move || {
            notify_report.notify_one();
            notify_output.notify_one();
        });
        let services = ServicePrograms::new(&data, Arc::clone(&clock), http, host_env.clone(), notify);
        let plugins = PluginSpools::open(&data);
        let publisher = MessagePublisher::new(None, Arc::clone(&clock));
        let tasks = TaskPrograms::new(None, Arc::clone(&clock));
        Ok(Self {
            version: version.to_owned(),
            clock,
            host_env,
            observer,
            noops: Mutex::default(),
            processes: Mutex::default(),
            services,
            tasks,
            report_wakeup,
            output_wakeup,
            request_wakeup: Notify::new(),
            keeper_wakeup: Wakeup::new()?,
            problem_wakeup: Notify::new(),
            is_keeper_known: AtomicBool::new(false),
            launch_wakeup: Notify::new(),
            data,
            deliveries,
            commands: Mutex::default(),
            publisher,
            delivery_reports,
            thread_probes,
            command_probes: Mutex::default(),
            probe_reports,
            plugins,
            progress_reports: ReportQueue::default(),
        })
    }

    /// This runner with a store of tasks, for messages of actions and for programs; `None` if the store does not keep tasks.
    #[must_use]
    pub fn with_tasks(self, tasks: Option<Arc<dyn TaskStore>>) -> Self {
        let programs = TaskPrograms::new(tasks.clone(), Arc::clone(&self.clock));
        Self { publisher: MessagePublisher::new(tasks, Arc::clone(&self.clock)), tasks: programs, ..self }
    }

    /// Carries requests of the node and reports to it, until it is dropped.
    pub async fn run(&self, node: &NodeHandle) {
        tokio::join!(
            self.forward_requests(),
            self.forward_reports(node),
            self.forward_deliveries(node),
            self.forward_messages(node),
            self.tasks.run(node),
            self.forward_probes(node),
            self.forward_progress(node),
            self.forward_keeper_problems(node),
            self.settle_unanswered()
        );
    }

    /// Reports whether the keeper can start programs. The node begins with [`KEEPER_PENDING`].
    async fn forward_keeper_problems(&self, node: &NodeHandle) {
        let mut last: Option<Arc<str>> = Some(Arc::from(KEEPER_PENDING));
        loop {
            let problem = self.processes().keeper_problem();
            if problem == last {
                self.problem_wakeup.notified().await;
            } else {
                last.clone_from(&problem);
                node.report_keeper(problem).await;
                self.is_keeper_known.store(true, Ordering::Release);
            }
        }
    }

    /// Waits until the node has been told that the keeper works or fails, but not long. Until then the node rejects
    /// requests to start a run.
    pub async fn wait_for_keeper(&self) {
        let begun = self.clock.uptime();
        while !self.is_keeper_known.load(Ordering::Acquire) && self.clock.uptime().minus(begun) < KEEPER_WAIT {
            self.clock.sleep(KEEPER_POLL).await;
        }
    }

    /// Decides about launches that the keeper does not answer, by its journal.
    async fn settle_unanswered(&self) {
        loop {
            let runs = self.processes().take_unanswered(self.clock.uptime());
            if runs.is_empty() {
                let next = self.processes().next_unanswered();
                self.wait_until(next, &self.launch_wakeup).await;
                continue;
            }
            let started = self.runs_in_journal(&runs).await;
            for run in runs {
                self.processes().settle_unanswered(run, started.contains(&run));
            }
            self.report_wakeup.notify_one();
            self.problem_wakeup.notify_one();
            // A stop may have waited for the outcome.
            self.request_wakeup.notify_one();
        }
    }

    /// Which of these runs are in the keeper's journal; all of them if it cannot be read. The disk may hang with the
    /// keeper, so a thread of its own reads it.
    async fn runs_in_journal(&self, runs: &BTreeSet<RunId>) -> BTreeSet<RunId> {
        let keys: BTreeSet<RunKey> = runs.iter().map(|run| RunKey(run.bits())).collect();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let data = self.data.clone();
        let reader = std::thread::Builder::new().name("keeper's journal".to_owned());
        // Without a thread the sender is dropped, as after a failed read.
        let _ = reader.spawn(move || sender.send(runs_in_journal(&data, &keys)));
        let found = tokio::select! {
            biased;
            found = receiver => found.ok().and_then(Result::ok),
            () = self.clock.sleep(JOURNAL_WAIT) => None,
        };
        match found {
            Some(found) => runs.iter().filter(|run| found.contains(&RunKey(run.bits()))).copied().collect(),
            None => runs.clone(),
        }
    }

    /// Waits for a notification, or until an uptime.
    async fn wait_until(&self, at: Option<Span>, notify: &Notify) {
        match at.map(|at| at.minus(self.clock.uptime())) {
            Some(wait) => tokio::select! {
                biased;
                () = notify.notified() => {}
                () = self.clock.sleep(wait) => {}
            },
            None => notify.notified().await,
        }
    }

    /// Wakes the keeper client once the node has sent all its requests for now: launches that are sent together share
    /// one write of the keeper's journal, and their programs start sooner.
    async fn forward_requests(&self) {
        loop {
            self.request_wakeup.notified().await;
            self.keeper_wakeup.notify();
        }
    }

    async fn forward_reports(&self, node: &NodeHandle) {
        loop {
            let uptime = self.clock.uptime();
            if self.processes().expire_settled(uptime) {
                self.keeper_wakeup.notify();
            }
            let mut reports = self.noops().take(uptime, REPORTS_MAX);
            reports.extend(self.processes().take_reports(uptime, REPORTS_MAX));
            reports.extend(self.services.take_reports(uptime, REPORTS_MAX));
            if reports.is_empty() {
                self.wait_for_report().await;
            }
            for (run, report) in reports {
                if !self.is_command_report(run, &report) {
                    node.report(run, report).await;
                }
            }
        }
    }

    /// Whether a report is about the command of an action or a check. If the command has ended, its result is queued.
    fn is_command_report(&self, run: RunId, report: &ProgramReport) -> bool {
        let is_command = self.is_command(run);
        let delivered = lock_mutex(&self.commands).finish(run, report);
        let answered = lock_mutex(&self.command_probes).finish(run, report);
        if delivered.is_some() || answered.is_some() {
            // The node has no run for it, so nothing else lets the keeper forget it.
            self.processes().settled(run);
            self.request_wakeup.notify_one();
        }
        delivered.into_iter().for_each(|report| self.delivery_reports.push(report));
        answered.into_iter().for_each(|report| self.probe_reports.push(report));
        is_command
    }

    /// Whether the keeper's program with this id is the command of an action or a check.
    fn is_command(&self, id: RunId) -> bool {
        lock_mutex(&self.commands).contains(id) || lock_mutex(&self.command_probes).contains(id)
    }

    async fn forward_deliveries(&self, node: &NodeHandle) {
        loop {
            let DeliveryReport { action, attempt, result } = self.delivery_reports.next().await;
            node.report_delivery(action, attempt, result).await;
        }
    }

    async fn forward_messages(&self, node: &NodeHandle) {
        loop {
            for DeliveryReport { action, attempt, result } in self.publisher.publish_next().await {
                node.report_delivery(action, attempt, result).await;
            }
        }
    }

    async fn forward_probes(&self, node: &NodeHandle) {
        loop {
            let ProbeReport { run, attempt, result } = self.probe_reports.next().await;
            node.report_probe(run, attempt, result).await;
        }
    }

    async fn wait_for_report(&self) {
        let next = [self.noops().next(), self.processes().next_due(), self.services.next_due()];
        let next = next.into_iter().flatten().min();
        self.wait_until(next, &self.report_wakeup).await;
    }

    /// Notified when there is a message for the keeper.
    pub fn keeper_wakeup(&self) -> &Wakeup {
        &self.keeper_wakeup
    }

    /// How many programs the keeper runs for this node.
    pub fn running_count(&self) -> usize {
        self.processes().running().count()
    }

    /// Whether the keeper runs any program for this node.
    pub(crate) fn has_running(&self) -> bool {
        self.processes().running().next().is_some()
    }

    /// The runs whose programs the keeper runs, in order.
    pub(crate) fn running_runs(&self) -> Vec<RunId> {
        self.processes().running().collect()
    }

    /// Whether a run has a program here that can have output.
    pub(crate) fn has(&self, run: RunId) -> bool {
        self.processes().has(run) || self.services.has(run)
    }

    /// The file with the response to the request of a run; `None` if its program is a process.
    pub(crate) fn response_file(&self, run: RunId) -> Option<PathBuf> {
        self.services.has(run).then(|| self.services.response_file(run))
    }

    /// The secrets that the output of a process must not show, as they are now; `None` if the run is unknown.
    pub(crate) fn secrets_of(&self, run: RunId) -> Option<SecretMask> {
        let run = self.processes().run(run)?;
        run.work.as_ref().map(|program| self.host_env.secrets_of(program))
    }

    /// Whether every run without a process here is over or was never started.
    pub(crate) fn has_all(&self) -> bool {
        self.processes().has_all()
    }

    /// Whether no earlier daemon can have stored output of a run.
    pub(crate) fn is_new(&self, run: RunId) -> bool {
        self.processes().is_new(run)
    }

    /// Takes programs that have ended and whose outputs have to be stored.
    pub(crate) fn take_unstored(&self, most: usize) -> Vec<UnstoredOutput> {
        let mut unstored = self.processes().take_unstored(most);
        let responses = self.services.take_unstored(most.saturating_sub(unstored.len()));
        unstored.extend(responses.into_iter().map(|(run, length)| UnstoredOutput { run, length: Some(length) }));
        unstored
    }

    /// The output of a program that has ended is stored.
    pub(crate) fn output_stored(&self, run: RunId, written: OutputSummary) {
        if self.services.has(run) {
            self.services.output_stored(run, written);
        } else {
            let plugin = self.plugin_end(run);
            self.processes().output_stored(run, written, plugin.as_ref());
        }
        self.report_wakeup.notify_one();
    }

    /// Waits until there may be an output to store.
    pub(crate) async fn output_notified(&self) {
        self.output_wakeup.notified().await;
    }

    /// Wakes the thread that stores outputs.
    pub(crate) fn notify_output(&self) {
        self.output_wakeup.notify_one();
    }

    pub(crate) fn observe(&self, event: &ProgramEvent) {
        (self.observer)(event);
    }

    fn observe_table(&self) {
        let events = self.processes().take_events();
        events.iter().for_each(|event| self.observe(event));
    }

    fn noops(&self) -> MutexGuard<'_, Noops> {
        lock_mutex(&self.noops)
    }

    fn processes(&self) -> MutexGuard<'_, Processes> {
        lock_mutex(&self.processes)
    }

    /// A table was changed by a request of the node.
    fn requested(&self, is_process: bool) {
        if is_process {
            self.request_wakeup.notify_one();
            // A program that is adopted may have ended.
            self.notify_output();
            self.launch_wakeup.notify_one();
        }
        self.report_wakeup.notify_one();
    }
}

impl ProgramRunner for LocalRunner {
    fn launch(&self, request: LaunchRequest) {
        let is_process = is_process(&request.run);
        if is_process {
            fail::point("daemon-before-launch");
            self.processes().launch(request);
        } else if is_service(&request.run) {
            self.services.launch(&request);
        } else if is_task(&request.run) {
            self.tasks.launch(&request.run);
        } else {
            self.noops().launch(&request.run, request.kill_at, self.clock.uptime());
        }
        self.requested(is_process);
    }

    fn adopt(&self, run: Arc<Run>) {
        let is_process = is_process(&run);
        if is_process {
            self.processes().adopt(run, self.clock.uptime());
        } else if is_service(&run) {
            self.services.adopt(&run);
        } else if is_task(&run) {
            self.tasks.launch(&run);
        } else {
            self.noops().adopt(&run, self.clock.now(), self.clock.uptime());
        }
        self.requested(is_process);
    }

    fn extend(&self, leases: &[(RunId, Span)]) {
        self.noops().extend(leases, self.clock.uptime());
        self.processes().extend(leases);
        self.services.extend(leases);
        self.requested(true);
    }

    fn stop(&self, run: &Run) {
        let is_process = is_process(run);
        if is_process {
            self.processes().stop(run);
        } else if is_service(run) {
            self.services.stop(run);
        } else if is_task(run) {
            self.tasks.stop(run);
        } else {
            self.noops().stop(run);
        }
        self.requested(is_process);
    }

    fn release(&self, run: RunId) {
        self.services.settled(run);
        self.tasks.settled(run);
    }

    fn signal(&self, run: RunId, signal: Signal) {
        let is_process = self.processes().has(run);
        if is_process {
            self.processes().signal(run, signal);
        } else if self.services.has(run) {
            self.services.signal(run, signal);
        } else if self.tasks.has(run) {
            self.tasks.signal(run, signal);
        } else {
            self.noops().signal(run, signal);
        }
        self.requested(is_process);
    }

    fn deliver(&self, action: Arc<ActionRecord>) {
        match action.work.kind() {
            ActionKind::Command => {
                let launch = lock_mutex(&self.commands).launch(&action, self.clock.uptime());
                if let Some(request) = launch {
                    self.processes().launch(request);
                    self.requested(true);
                }
            }
            ActionKind::Webhook | ActionKind::Email => self.deliveries.submit(action),
            ActionKind::Publish => self.publisher.submit(action),
            // The node itself decides about these.
            ActionKind::Run => {}
        }
    }

    fn probe(&self, request: ProbeRequest) {
        match &request.probe {
            ResolvedProbe::File(_) | ResolvedProbe::Http(_) => {
                self.thread_probes.submit(request.run.id, request.attempt, &request.probe);
            }
            ResolvedProbe::Command(process) => {
                let launch = lock_mutex(&self.command_probes).launch(&request, process, self.clock.uptime());
                if let Some(launch) = launch {
                    self.processes().launch(launch);
                    self.requested(true);
                }
            }
        }
    }
}

impl EngineObserver for LocalRunner {
    /// The keeper need not remember what is stored.
    fn on_event(&self, news: &EngineEvent<'_>) {
        match news {
            EngineEvent::Committed { done, .. } => {
                for change in &done.changes {
                    if let RecordChange::Put(Record::Run(run)) = change
                        && is_service(run)
                        && run.state.has_program()
                    {
                        self.services.committed(run);
                    }
                }
                let finished = done.changes.iter().filter_map(|change| match change {
                    RecordChange::Put(Record::Run(run)) if run.state.is_finished() => Some(run),
                    _ => None,
                });
                let (services, others): (Vec<_>, Vec<_>) = finished.partition(|run| is_service(run));
                services.into_iter().for_each(|run| self.services.settled(run.id));
                others.iter().filter(|run| is_task(run)).for_each(|run| self.tasks.settled(run.id));
                let mut settled = others.into_iter().filter(|run| is_process(run)).map(|run| run.id);
                let Some(first) = settled.next() else { return };
                let mut processes = self.processes();
                processes.settled(first);
                settled.for_each(|run| processes.settled(run));
            }
            EngineEvent::ReportIgnored(run) => {
                self.services.settled(*run);
                self.tasks.settled(*run);
                self.processes().settled(*run);
            }
            EngineEvent::Ready { .. } => {
                self.processes().ready();
                self.observe_table();
            }
            _ => return,
        }
        self.request_wakeup.notify_one();
    }
}

fn is_process(run: &Run) -> bool {
    matches!(run.work, Some(ResolvedProgram::Process(_)))
}

impl fmt::Debug for LocalRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalRunner").finish_non_exhaustive()
    }
}
