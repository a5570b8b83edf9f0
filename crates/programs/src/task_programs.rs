//! Programs of the kind `task`: a run creates a durable task, and waits for it if the job says so, or writes to a port. The
//! request has the run as its key, so a run that is taken over, or found again after a crash, creates no second task.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cronhold_core::RunId;
use cronhold_core::State;
use cronhold_core::command::{ExitOutcome, ProgramReport};
use cronhold_core::job::STORE_WITHOUT_TASKS;
use cronhold_core::record::{ResolvedProgram, ResolvedTask, Run};
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_core::task::{
    ActOutcome, JsonText, NewTask, PortDirection, PortItem, PortName, PortTarget, TaskAct, TaskId, TaskKey,
    TaskRefusal, TaskStatus, TaskTarget, TaskUnit,
};
use cronhold_engine::{MachineClock, NodeHandle};
use cronhold_keeper::fail;
use cronhold_schedule::Span;
use cronhold_store::lock_mutex;
use cronhold_store::tasks::{TaskReceipt, TaskStore, TaskUnitError};
use tokio::sync::Notify;

/// Runs that send their requests in one commit.
const BATCH_MAX: usize = 256;
/// The first wait until a task is looked at; each further one is twice as long.
const LOOK_MIN: Span = Span::from_millis(50);
/// The longest wait between two looks at a task.
const LOOK_MAX: Span = Span::from_secs(2);
/// The wait after the store could not be reached.
const RETRY_WAIT: Span = Span::from_secs(1);

/// The programs of this node that create tasks or write to them.
#[derive(Debug)]
pub(crate) struct TaskPrograms {
    /// `None` if the store does not keep tasks.
    tasks: Option<Arc<dyn TaskStore>>,
    clock: Arc<dyn MachineClock>,
    table: Mutex<BTreeMap<RunId, TaskEntry>>,
    wakeup: Notify,
}

#[derive(Debug)]
struct TaskEntry {
    run: Arc<Run>,
    phase: TaskPhase,
    /// The signal that requested its end.
    stop: Option<Signal>,
    /// Whether its task was terminated for that.
    is_terminated: bool,
    /// Whether the node has to be told again what is known of it.
    is_adopted: bool,
}

#[derive(Debug, Clone)]
enum TaskPhase {
    /// The request is sent at this uptime.
    Request(Span),
    /// The task is looked at, at this uptime, and after a longer wait the next time.
    Wait { task: TaskId, at: Span, wait: Span },
    /// The end was reported. It is kept until it is committed.
    Ended(ExitOutcome),
}

/// What a step of the loop reports to the node.
type TaskReports = Vec<(RunId, ProgramReport)>;

/// Whether the program of a run is of this kind.
pub(crate) fn is_task(run: &Run) -> bool {
    matches!(run.work, Some(ResolvedProgram::Task(_)))
}

impl TaskPrograms {
    pub(crate) fn new(tasks: Option<Arc<dyn TaskStore>>, clock: Arc<dyn MachineClock>) -> Self {
        Self { tasks, clock, table: Mutex::default(), wakeup: Notify::new() }
    }

    /// Begins the program of a run, or follows it if it has begun before.
    pub(crate) fn launch(&self, run: &Arc<Run>) {
        let now = self.clock.uptime();
        let phase = match run.remote_task().and_then(task_of) {
            Some(task) => TaskPhase::Wait { task, at: now, wait: LOOK_MIN },
            None => TaskPhase::Request(now),
        };
        let stop = (run.state == State::Stopping).then_some(run.terms.signal);
        let entry = TaskEntry { run: Arc::clone(run), phase, stop, is_terminated: false, is_adopted: true };
        let mut table = lock_mutex(&self.table);
        table.entry(run.id).and_modify(|known| known.is_adopted = true).or_insert(entry);
        drop(table);
        self.wakeup.notify_one();
    }

    /// Requests the end of a run: its task is terminated. With SIGKILL, the run does not wait for that.
    pub(crate) fn signal(&self, run: RunId, signal: Signal) {
        if let Some(entry) = lock_mutex(&self.table).get_mut(&run) {
            entry.stop = Some(signal);
            if let TaskPhase::Wait { at, wait, .. } = &mut entry.phase {
                (*at, *wait) = (Span::ZERO, LOOK_MIN);
            }
        }
        self.wakeup.notify_one();
    }

    /// Requests the end of a run that may not have been followed yet.
    pub(crate) fn stop(&self, run: &Run) {
        if !self.has(run.id) {
            self.launch(&Arc::new(run.clone()));
        }
        self.signal(run.id, run.terms.signal);
    }

    /// The end of a run is committed, or the run does not belong to this node any more.
    pub(crate) fn settled(&self, run: RunId) {
        lock_mutex(&self.table).remove(&run);
    }

    pub(crate) fn has(&self, run: RunId) -> bool {
        lock_mutex(&self.table).contains_key(&run)
    }

    /// Carries programs out, and reports to the node, until it is dropped.
    pub(crate) async fn run(&self, node: &NodeHandle) {
        loop {
            let mut reports = self.adopted();
            reports.extend(self.send_requests().await);
            reports.extend(self.look_at_tasks().await);
            if reports.is_empty() {
                self.wait().await;
            }
            for (run, report) in reports {
                node.report(run, report).await;
            }
        }
    }

    /// Waits until there is something to do.
    async fn wait(&self) {
        let next = lock_mutex(&self.table).values().filter_map(TaskEntry::due).min();
        match next {
            Some(due) => tokio::select! {
                biased;
                () = self.wakeup.notified() => {}
                () = self.clock.sleep(due.minus(self.clock.uptime())) => {}
            },
            None => self.wakeup.notified().await,
        }
    }

    /// Reports what is known of runs that the node has just launched or adopted.
    fn adopted(&self) -> TaskReports {
        let mut table = lock_mutex(&self.table);
        let report = |entry: &mut TaskEntry| {
            std::mem::take(&mut entry.is_adopted).then(|| match &entry.phase {
                TaskPhase::Ended(outcome) => (entry.run.id, ProgramReport::Ended(outcome.clone())),
                TaskPhase::Request(_) | TaskPhase::Wait { .. } => (entry.run.id, ProgramReport::Launched),
            })
        };
        table.values_mut().filter_map(report).collect()
    }

    /// The entries whose time has come in a phase.
    fn due(&self, is_wanted: fn(&TaskPhase) -> bool) -> Vec<Arc<Run>> {
        let now = self.clock.uptime();
        let table = lock_mutex(&self.table);
        let due = table.values().filter(|entry| is_wanted(&entry.phase) && entry.due().is_some_and(|due| due <= now));
        due.take(BATCH_MAX).map(|entry| Arc::clone(&entry.run)).collect()
    }

    async fn send_requests(&self) -> TaskReports {
        let runs = self.due(|phase| matches!(phase, TaskPhase::Request(_)));
        if runs.is_empty() {
            return Vec::new();
        }
        let Some(tasks) = &self.tasks else {
            return runs.iter().flat_map(|run| self.end(run, refused(STORE_WITHOUT_TASKS))).collect();
        };
        let mut reports = TaskReports::new();
        let mut sent = Vec::new();
        for run in runs {
            match self.unit(&**tasks, &run).await {
                Ok(unit) => sent.push((run, unit)),
                Err(error) => reports.extend(self.failed(&run, &error)),
            }
        }
        fail::point("daemon-before-task");
        let results = tasks.commit(sent.iter().map(|(_, unit)| unit.clone()).collect()).await;
        fail::point("daemon-after-task");
        for ((run, _), result) in sent.iter().zip(results) {
            reports.extend(match result {
                Ok(receipt) => self.done(run, &receipt),
                Err(error) => self.failed(run, &error),
            });
        }
        reports
    }

    /// The request of a run. Its key is the id of the run, which each attempt has for itself.
    async fn unit(&self, tasks: &dyn TaskStore, run: &Run) -> Result<TaskUnit, TaskUnitError> {
        let Some(ResolvedProgram::Task(program)) = &run.work else { return Ok(TaskUnit::request(Vec::new())) };
        let write = |task: TaskTarget, port: &PortName, data: &JsonText| TaskAct::Write {
            port: PortTarget { task, direction: PortDirection::In, port: port.clone() },
            items: vec![PortItem::new(data.clone())],
            as_default: false,
            notify: true,
        };
        let acts = match &**program {
            ResolvedTask::Queue { queue, class, args, inports, alias, .. } => {
                let args = (!args.is_empty()).then(|| JsonText::list(args));
                let created_by = format!("run {}", run.id);
                let new = NewTask { args, created_by, ..NewTask::new(queue.clone(), class.clone()) };
                let target = TaskTarget::New(0);
                let alias = alias.clone().map(|alias| TaskAct::AddAlias { task: target, alias });
                let writes = inports.iter().map(|(port, data)| write(target, port, data));
                std::iter::once(TaskAct::Create(new)).chain(alias).chain(writes).collect()
            }
            ResolvedTask::Write { to, port, data } => {
                let unknown = || TaskUnitError::Refused(TaskRefusal::Invalid(format!("there is no task `{to}`")));
                let key = program.receiver().ok_or_else(unknown)?;
                let task = tasks.find(&key).await?.ok_or_else(unknown)?;
                vec![write(TaskTarget::Id(task.id), port, data)]
            }
        };
        Ok(TaskUnit::request(acts).once(&format!("run {}", run.id)))
    }

    /// The request of a run has taken effect, now or before.
    fn done(&self, run: &Run, receipt: &TaskReceipt) -> TaskReports {
        let created = match receipt {
            TaskReceipt::Repeated(created) => created.first().copied(),
            TaskReceipt::Committed(outcomes) => outcomes.iter().find_map(|outcome| match outcome {
                ActOutcome::Created(task) => Some(*task),
                _ => None,
            }),
        };
        let Some(task) = created else { return self.end(run, ExitOutcome::SUCCESS) };
        let mut reports = vec![(run.id, ProgramReport::TaskStarted(format!(r#"{{"task":{task}}}"#)))];
        match waits(run) {
            true => self.enter(run.id, TaskPhase::Wait { task, at: self.clock.uptime(), wait: LOOK_MIN }),
            false => reports.extend(self.end(run, ExitOutcome::SUCCESS)),
        }
        reports
    }

    /// A request of a run, or a look at its task, has failed. If the store may be reachable later, it is repeated.
    fn failed(&self, run: &Run, error: &TaskUnitError) -> TaskReports {
        match error {
            TaskUnitError::Fault(fault) if fault.is_transient() => {
                let at = self.clock.uptime().plus(RETRY_WAIT);
                self.enter(run.id, TaskPhase::Request(at));
                Vec::new()
            }
            error => self.end(run, refused(&error.to_string())),
        }
    }

    async fn look_at_tasks(&self) -> TaskReports {
        let Some(tasks) = &self.tasks else { return Vec::new() };
        let mut reports = TaskReports::new();
        for run in self.due(|phase| matches!(phase, TaskPhase::Wait { .. })) {
            reports.extend(self.look_at(&**tasks, &run).await);
        }
        reports
    }

    async fn look_at(&self, tasks: &dyn TaskStore, run: &Run) -> TaskReports {
        let (phase, stop, is_terminated) = match lock_mutex(&self.table).get(&run.id) {
            Some(entry) => (entry.phase.clone(), entry.stop, entry.is_terminated),
            None => return Vec::new(),
        };
        let TaskPhase::Wait { task, wait, .. } = phase else { return Vec::new() };
        let again = |wait: Span| {
            let at = self.clock.uptime().plus(wait);
            let wait = Span::from_micros(wait.micros().saturating_mul(2)).min(LOOK_MAX);
            self.enter(run.id, TaskPhase::Wait { task, at, wait });
            Vec::new()
        };
        let Ok(found) = tasks.find(&TaskKey::Id(task)).await else { return again(RETRY_WAIT) };
        let said = |what: &str| {
            Some(failure(stop.map_or_else(|| Reason::Said(format!("task {task} {what}")), Reason::Signal)))
        };
        let outcome = match found.map(|record| record.status) {
            Some(TaskStatus::Completed) => Some(ExitOutcome::SUCCESS),
            Some(TaskStatus::Failed) => said("failed"),
            Some(TaskStatus::Terminated) => said("was terminated"),
            None => said("was deleted"),
            Some(TaskStatus::Queued | TaskStatus::Running | TaskStatus::Suspended | TaskStatus::Terminating) => None,
        };
        if let Some(outcome) = outcome {
            return self.end(run, outcome);
        }
        let Some(signal) = stop else { return again(wait) };
        if !is_terminated {
            let terminate = TaskAct::Terminate { task: TaskTarget::Id(task), recursive: true };
            if tasks.commit(vec![TaskUnit::request(vec![terminate])]).await.pop().is_none_or(|result| result.is_err()) {
                return again(RETRY_WAIT);
            }
            if let Some(entry) = lock_mutex(&self.table).get_mut(&run.id) {
                entry.is_terminated = true;
            }
        }
        if signal == Signal::KILL { self.end(run, failure(Reason::Signal(signal))) } else { again(LOOK_MIN) }
    }

    fn enter(&self, run: RunId, phase: TaskPhase) {
        if let Some(entry) = lock_mutex(&self.table).get_mut(&run) {
            entry.phase = phase;
        }
    }

    fn end(&self, run: &Run, outcome: ExitOutcome) -> TaskReports {
        self.enter(run.id, TaskPhase::Ended(outcome.clone()));
        vec![(run.id, ProgramReport::Ended(outcome))]
    }
}

impl TaskEntry {
    /// The uptime at which there is something to do; `None` if it has ended.
    fn due(&self) -> Option<Span> {
        match self.phase {
            _ if self.is_adopted => Some(Span::ZERO),
            TaskPhase::Request(at) | TaskPhase::Wait { at, .. } => Some(at),
            TaskPhase::Ended(_) => None,
        }
    }
}

/// Whether a run ends with its task.
fn waits(run: &Run) -> bool {
    let Some(ResolvedProgram::Task(program)) = &run.work else { return false };
    matches!(**program, ResolvedTask::Queue { wait: true, .. })
}

/// The task that the record of a run names.
fn task_of(json: &str) -> Option<TaskId> {
    let value: serde_json::Value = serde_json::from_str(json).ok()?;
    TaskId::new(value.get("task")?.as_u64()?)
}

/// The request was refused, so no task was created and nothing was written.
fn refused(why: &str) -> ExitOutcome {
    failure(Reason::NotLaunched(why.to_owned()))
}

fn failure(reason: Reason) -> ExitOutcome {
    ExitOutcome { success: false, reason: Some(reason), ..ExitOutcome::SUCCESS }
}
