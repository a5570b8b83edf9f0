//! Makes jobs and their shared definitions agree: plans what each job needs, sends the commands to the node, updates the
//! definitions and notifies Cronken's nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::command::{Command, Precondition};
use cronhold_core::decision::Rejection;
use cronhold_core::record::{Actor, JobSource, RecordKey};
use cronhold_core::{JobId, JobUid};
use cronhold_engine::{NodeHandle, RequestError};
use cronhold_jobfile::foreign::ForeignForm;
use cronhold_schedule::ZoneRegistry;
use cronhold_store::{DefinitionStatus, DefinitionUpdate, Fault, ForeignSystem, SharedStore, Store};
use tokio::task::{JoinSet, yield_now};

use crate::definition::{self, Dialect, ReadOptions};
use crate::event::outgoing_event;
use crate::new_job_uid;
use crate::plan::{JobPlan, LocalJob, PeerNotification, plan_job, rules};
use crate::report::{InvalidDefinition, SharedJobReport, mistakes_text};
use crate::report_history::{ReportHistory, digest};
use crate::snapshot::{JobScope, ReconcileSnapshot, removed_holder, removed_lock};

/// Jobs whose commands the node handles at the same time.
const JOBS_IN_FLIGHT_MAX: usize = 512;
/// After this many plans the other tasks of the thread get a turn.
const PLANS_PER_TURN: usize = 50;
/// More pauses than this are sent as one `reload` event.
const PAUSE_EVENTS_MAX: usize = 100;

/// Makes jobs and their shared definitions agree. It remembers what agreed already and what it has reported.
#[derive(Debug)]
pub(crate) struct Reconciler {
    store: Arc<dyn Store>,
    node: NodeHandle,
    zones: Arc<ZoneRegistry>,
    /// Jobs that agreed with their definitions, by what was compared.
    agreed: BTreeMap<JobId, ComparedVersions>,
    /// What was reported about definitions.
    history: ReportHistory,
    /// Whether all jobs were gone the last time.
    had_lost_all_jobs: bool,
    /// Whether it runs in a daemon, which has a log and reconciles again. A command reconciles once.
    is_in_daemon: bool,
    /// Whether Cronken's nodes ran the same jobs the last time.
    pub(crate) had_foreign_nodes: bool,
}

/// What was compared when a job agreed with its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ComparedVersions {
    text: u64,
    uid: JobUid,
    revision: u32,
    is_paused: bool,
}

/// Changes that Cronken's nodes know already, so that they are not notified.
#[derive(Debug, Default)]
pub(crate) struct AlreadyNotified {
    /// Jobs whose change they know.
    pub(crate) jobs: BTreeSet<JobId>,
    /// They know, or are notified otherwise, that everything was paused or resumed.
    pub(crate) pauses: bool,
    /// The pause of everything has ended, which they do not know.
    pub(crate) all_resumed: bool,
}

/// What a reconciliation did.
#[derive(Debug, Default)]
pub(crate) struct ReconcileResult {
    /// What the daemon should log.
    pub(crate) reports: Vec<SharedJobReport>,
    /// Whether something could not be done now and should be tried again soon.
    pub(crate) retry_soon: bool,
    changed: Vec<JobId>,
    removed: Vec<JobId>,
    written: usize,
}

impl Reconciler {
    pub(crate) fn new(store: Arc<dyn Store>, node: NodeHandle, zones: Arc<ZoneRegistry>) -> Self {
        Self {
            store,
            node,
            zones,
            agreed: BTreeMap::new(),
            history: ReportHistory::default(),
            had_lost_all_jobs: false,
            is_in_daemon: true,
            had_foreign_nodes: false,
        }
    }

    /// For a command. It does not read definitions again by other rules: that changes times, and only a daemon has a log
    /// to report it.
    pub(crate) fn for_command(self) -> Self {
        Self { is_in_daemon: false, ..self }
    }

    /// Makes jobs and definitions agree. `restore_removed` is whether jobs that a `remove` event has removed are created
    /// again. Cronken's nodes are notified of every definition that changed, except those that they know.
    pub(crate) async fn reconcile(
        &mut self,
        scope: &JobScope,
        restore_removed: bool,
        known: &AlreadyNotified,
    ) -> Result<ReconcileResult, Fault> {
        let store = Arc::clone(&self.store);
        let Some(shared) = store.shared() else { return Ok(ReconcileResult::default()) };
        let mut result = ReconcileResult::default();
        let mut snapshot = ReconcileSnapshot::load(&*store, shared, scope).await?;
        self.history.report_invalid_names(&snapshot.invalid_names, &mut result.reports);
        if *scope == JobScope::All {
            self.history.retain_mistakes(|id| snapshot.definitions.contains_key(id));
            // ZooKeeper does not lose data, so clients have removed what is gone.
            if shared.system() == ForeignSystem::Cronken {
                self.guard_against_loss(&mut snapshot, &mut result);
            }
        }
        let restored = if restore_removed { snapshot.restore_removed() } else { BTreeSet::new() };
        self.had_foreign_nodes = shared.has_foreign_nodes();
        let mut plans = self.plan_all(&snapshot, shared, &mut result).await;
        if *scope == JobScope::All || shared.system() == ForeignSystem::CastleCron {
            self.confirm_removals(&mut plans, shared).await?;
        } else {
            // A job is removed only while all jobs are known, so that a loss of all definitions is recognised.
            let before = plans.len();
            plans.retain(|(_, plan)| !plan.removes_job());
            result.retry_soon |= plans.len() < before;
        }
        let done = self.send_commands(plans, &mut result).await;
        match self.publish(done, &restored, shared, known, &mut result).await {
            // The commands are carried out and reported. The next reconciliation does the rest.
            Err(fault) if fault.is_transient() && self.is_in_daemon => result.retry_soon = true,
            published => published?,
        }
        result.report_changes();
        Ok(result)
    }

    /// Updates the definitions and notifies Cronken's nodes.
    async fn publish(
        &mut self,
        done: Vec<(JobId, JobPlan)>,
        restored: &BTreeSet<JobId>,
        shared: &dyn SharedStore,
        known: &AlreadyNotified,
        result: &mut ReconcileResult,
    ) -> Result<(), Fault> {
        self.undo_late_creations(&done, restored).await?;
        for id in done.iter().map(|(id, _)| id).filter(|id| restored.contains(*id)) {
            // A later removal of the job has to remove its definition too.
            self.request(Command::ReleaseLock { lock: removed_lock(id), holder: removed_holder() }).await.ok();
        }
        self.settle(done, shared, known, result).await?;
        if known.all_resumed && shared.has_foreign_nodes() {
            // A `resume` of all jobs would end pauses of single jobs too, and make Cronken's nodes drop jobs that are never
            // due. The definitions show which jobs are paused.
            shared.send(&outgoing_event("reload", "")).await?;
        }
        Ok(())
    }

    /// The present mistakes in definitions.
    pub(crate) fn invalid_definitions(&self) -> Vec<InvalidDefinition> {
        self.history.invalid_definitions()
    }

    /// Notes mistakes in the invalid ones among these definitions, or among all, as Cronken's validation does. Returns how
    /// many definitions were marked as invalid for the first time.
    pub(crate) async fn validate(&mut self, names: &[String]) -> Result<usize, Fault> {
        let store = Arc::clone(&self.store);
        let Some(shared) = store.shared() else { return Ok(0) };
        let definitions = shared.forms(Some(names).filter(|names| !names.is_empty())).await?;
        let options = read_options(&self.zones, shared);
        let marked = definitions.into_iter().filter_map(|found| {
            let text = found.text?;
            let read = definition::read(&text, &options);
            let errors = mistakes_text(&read.mistakes);
            let marked = ForeignForm::parse(&text).ok().filter(|_| read.job.is_none());
            let marked = marked.and_then(|form| definition::with_errors(&form, &errors))?.to_string();
            Some(DefinitionUpdate { name: found.name, found: Some(text), text: Some(marked), reading: rules(&options) })
        });
        let marked: Vec<DefinitionUpdate> = marked.collect();
        if marked.is_empty() {
            return Ok(0);
        }
        Ok(shared.settle(&marked).await?.into_iter().filter(|is_settled| *is_settled).count())
    }

    /// Treats the disappearance of everything at once as a loss of data, and not as a request to remove it.
    fn guard_against_loss(&mut self, snapshot: &mut ReconcileSnapshot, result: &mut ReconcileResult) {
        let kept = snapshot.keep_jobs_if_all_definitions_are_lost();
        if kept > 0 {
            result.reports.push(SharedJobReport::AllDefinitionsLost { kept });
        }
        let has_lost = snapshot.has_lost_all_jobs();
        if has_lost && self.had_lost_all_jobs {
            result.reports.push(SharedJobReport::AllJobsLost);
            snapshot.restore_deleted();
        } else if has_lost {
            // Another program may be about to remove the definitions too.
            snapshot.definitions.clear();
        }
        self.had_lost_all_jobs = has_lost;
    }

    async fn plan_all(
        &mut self,
        snapshot: &ReconcileSnapshot,
        shared: &dyn SharedStore,
        result: &mut ReconcileResult,
    ) -> Vec<(JobId, JobPlan)> {
        let mut plans = Vec::new();
        let zones = Arc::clone(&self.zones);
        let options = read_options(&zones, shared);
        for (count, id) in snapshot.definitions.keys().enumerate() {
            if count % PLANS_PER_TURN == PLANS_PER_TURN - 1 {
                yield_now().await;
            }
            plans.extend(self.plan(id, snapshot, &options, result).map(|plan| (id.clone(), plan)));
        }
        plans
    }

    /// Plans one job. Returns nothing if there is nothing to do.
    fn plan(
        &mut self,
        id: &JobId,
        snapshot: &ReconcileSnapshot,
        options: &ReadOptions<'_>,
        result: &mut ReconcileResult,
    ) -> Option<JobPlan> {
        let (shared, record) = (snapshot.definitions.get(id)?, snapshot.jobs.get(id));
        let (is_paused, all_paused) = (snapshot.paused.contains(id), snapshot.all_paused);
        let settled = DefinitionStatus::Settled(rules(options));
        let compared = record.zip(shared.text.as_ref()).filter(|_| shared.standing == settled);
        let compared = compared.map(|(record, text)| ComparedVersions {
            text: digest(text),
            uid: record.uid,
            revision: record.revision,
            is_paused: is_paused || all_paused,
        });
        if compared.is_some() && self.agreed.get(id) == compared.as_ref() {
            return None;
        }
        let local = record.map(|record| LocalJob { record, is_paused, all_paused });
        let (uid, was_removed) = (new_job_uid(&self.node), snapshot.removed.contains(id));
        let mut plan = plan_job(id, shared, local, was_removed, uid, options);
        if plan.is_reread && !self.is_in_daemon {
            // The definition is updated, and the job keeps its times until a daemon reads the definition again.
            plan = plan_job(id, shared, local, was_removed, uid, &options.with_other_dialect());
        }
        let text = shared.text.as_deref().unwrap_or_default();
        self.history.report_plan(id, text, record.is_some(), &plan, &mut result.reports);
        match compared.filter(|_| plan.is_empty()) {
            Some(compared) => drop(self.agreed.insert(id.clone(), compared)),
            None => drop(self.agreed.remove(id)),
        }
        Some(plan).filter(|plan| !plan.is_empty())
    }

    /// Checks once more that a definition is gone before its job is removed.
    async fn confirm_removals(&self, plans: &mut Vec<(JobId, JobPlan)>, shared: &dyn SharedStore) -> Result<(), Fault> {
        let removals = plans.iter().filter(|(_, plan)| plan.removes_job());
        let names: Vec<String> = removals.map(|(id, _)| id.to_string()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let definitions = shared.forms(Some(&names)).await?;
        let gone =
            definitions.into_iter().filter(|found| found.text.is_none() && found.standing == DefinitionStatus::Changed);
        let gone: BTreeSet<String> = gone.map(|found| found.name).collect();
        plans.retain(|(id, plan)| !plan.removes_job() || gone.contains(id.as_str()));
        Ok(())
    }

    /// Sends all commands to the node. Returns the plans whose commands were carried out.
    async fn send_commands(
        &mut self,
        plans: Vec<(JobId, JobPlan)>,
        result: &mut ReconcileResult,
    ) -> Vec<(JobId, JobPlan)> {
        let (mut done, waiting): (Vec<_>, Vec<_>) = plans.into_iter().partition(|(_, plan)| plan.commands.is_empty());
        let mut waiting = waiting.into_iter();
        let mut in_flight = JoinSet::new();
        loop {
            while in_flight.len() < JOBS_IN_FLIGHT_MAX
                && let Some((id, plan)) = waiting.next()
            {
                let node = self.node.clone();
                in_flight.spawn(async move {
                    let answer = carry_out(&node, &plan.commands).await;
                    (id, plan, answer)
                });
            }
            match in_flight.join_next().await {
                Some(Ok((id, plan, Ok(())))) => {
                    result.add_change(&id, &plan);
                    done.push((id, plan));
                }
                Some(Ok((id, plan, Err(refused)))) => self.handle_refusal(&id, &plan, &refused, result),
                // These tasks are never aborted, and the panic hook has reported a panic.
                Some(Err(_)) => {}
                None => return done,
            }
        }
    }

    /// Removes a job again that was created while a `remove` event removed it. The event handler marks a job as removed
    /// before it removes it, so a late creation sees the mark afterwards.
    async fn undo_late_creations(&self, done: &[(JobId, JobPlan)], restored: &BTreeSet<JobId>) -> Result<(), Fault> {
        let created = done.iter().filter(|(id, plan)| plan.creates_job() && !restored.contains(id));
        let created: Vec<&JobId> = created.map(|(id, _)| id).collect();
        let keys: Vec<RecordKey> = created.iter().map(|id| RecordKey::Lock(removed_lock(id))).collect();
        for (created, keys) in created.chunks(JOBS_IN_FLIGHT_MAX).zip(keys.chunks(JOBS_IN_FLIGHT_MAX)) {
            let marks = self.store.load(keys).await?;
            for (id, _) in created.iter().zip(marks).filter(|(_, mark)| mark.is_some()) {
                let (id, source, provided) = ((*id).clone(), JobSource::Foreign, Precondition::Any);
                self.request(Command::RemoveJob { id, source, provided }).await.ok();
            }
        }
        Ok(())
    }

    async fn settle(
        &mut self,
        plans: Vec<(JobId, JobPlan)>,
        shared: &dyn SharedStore,
        known: &AlreadyNotified,
        result: &mut ReconcileResult,
    ) -> Result<(), Fault> {
        let (notifications, settles): (Vec<_>, Vec<_>) =
            plans.into_iter().filter_map(|(id, plan)| Some(((id, plan.notification), plan.settle?))).unzip();
        if settles.is_empty() {
            return Ok(());
        }
        let settled = shared.settle(&settles).await?;
        result.retry_soon |= settled.contains(&false);
        let changed = settles.iter().zip(&settled).filter(|(settle, is_done)| **is_done && settle.found != settle.text);
        result.written = changed.count();
        if shared.has_foreign_nodes() {
            let sent = notifications.into_iter().zip(settled).filter(|(_, is_done)| *is_done);
            let sent = sent.filter_map(|((id, notification), _)| Some((id, notification?)));
            let sent = sent.filter(|(id, notification)| !known.covers(id, *notification));
            notify_peers(shared, sent.collect()).await?;
        }
        Ok(())
    }

    async fn request(&self, command: Command) -> Result<(), RequestError> {
        self.node.request(Actor::ForeignDefinition, command).await.map(drop)
    }

    /// Tries again soon if the refusal is temporary, and reports it otherwise.
    fn handle_refusal(&mut self, id: &JobId, plan: &JobPlan, refused: &RequestError, result: &mut ReconcileResult) {
        match refused {
            RequestError::Rejected(Rejection::JobThere(_) | Rejection::JobChanged { .. })
            | RequestError::Contended
            | RequestError::Busy
            | RequestError::Late => {
                result.retry_soon = true;
            }
            RequestError::Stopping => {}
            RequestError::Failed(fault) if fault.is_transient() => result.retry_soon = true,
            RequestError::Rejected(_) | RequestError::Failed(_) => {
                let text = plan.settle.as_ref().and_then(|settle| settle.found.as_deref()).unwrap_or_default();
                self.history.report_refusal(id, text, refused, &mut result.reports);
            }
        }
    }
}

impl AlreadyNotified {
    fn covers(&self, id: &JobId, notification: PeerNotification) -> bool {
        self.jobs.contains(id) || (self.pauses && notification != PeerNotification::Changed)
    }
}

impl ReconcileResult {
    fn add_change(&mut self, id: &JobId, plan: &JobPlan) {
        let ids = if plan.removes_job() { &mut self.removed } else { &mut self.changed };
        ids.push(id.clone());
        if plan.is_reread {
            self.reports.extend(reread_report(id, plan));
        }
    }

    fn report_changes(&mut self) {
        let (changed, removed) = (std::mem::take(&mut self.changed), std::mem::take(&mut self.removed));
        if !changed.is_empty() || !removed.is_empty() {
            self.reports.push(SharedJobReport::JobsChanged { changed, removed });
        }
        if self.written > 0 {
            self.reports.push(SharedJobReport::DefinitionsWritten { count: self.written });
        }
    }
}

impl JobPlan {
    fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.settle.is_none()
    }

    fn creates_job(&self) -> bool {
        self.commands.iter().any(|command| matches!(command, Command::PutJob { provided: Precondition::New, .. }))
    }

    fn removes_job(&self) -> bool {
        matches!(self.commands[..], [Command::RemoveJob { .. }])
    }
}

/// How definitions are read, which depends on whose they are, and on whether Cronken's nodes run the same jobs.
pub(crate) fn read_options<'z>(zones: &'z ZoneRegistry, shared: &dyn SharedStore) -> ReadOptions<'z> {
    let dialect = match shared.system() {
        ForeignSystem::CastleCron => Dialect::Castle,
        ForeignSystem::Cronken if shared.has_foreign_nodes() => Dialect::Cronken,
        ForeignSystem::Cronken => Dialect::Cron,
    };
    ReadOptions { zones, dialect }
}

/// Carries out commands one after the other. A command whose effect already holds succeeds.
async fn carry_out(node: &NodeHandle, commands: &[Command]) -> Result<(), RequestError> {
    for command in commands {
        match node.request(Actor::ForeignDefinition, command.clone()).await {
            Ok(_) => {}
            Err(RequestError::Rejected(rejection)) if rejection.is_so_already() => {}
            Err(RequestError::Rejected(Rejection::NoJob(_))) if matches!(command, Command::RemoveJob { .. }) => {}
            Err(refused) => return Err(refused),
        }
    }
    Ok(())
}

fn reread_report(id: &JobId, plan: &JobPlan) -> Option<SharedJobReport> {
    let rules = plan.settle.as_ref()?.reading;
    let jobs = plan.commands.iter().filter_map(|command| match command {
        Command::PutJob { job, .. } => Some(job),
        _ => None,
    });
    let schedules = jobs.flat_map(|job| &job.schedules);
    let times = schedules.map(|schedule| schedule.spec.words(id.as_str())).collect();
    Some(SharedJobReport::ScheduleReread { job: id.clone(), rules, times })
}

/// Sends events to Cronken's nodes, which read definitions only when an event requests it.
async fn notify_peers(shared: &dyn SharedStore, all: Vec<(JobId, PeerNotification)>) -> Result<(), Fault> {
    let is_short = all.len() <= PAUSE_EVENTS_MAX;
    let is_pause = |notification| is_short && notification != PeerNotification::Changed;
    let (pauses, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, notification)| is_pause(*notification));
    for (id, notification) in pauses {
        let action = if notification == PeerNotification::Paused { "pause" } else { "resume" };
        shared.send(&outgoing_event(action, id.as_str())).await?;
    }
    if !others.is_empty() {
        shared.send(&outgoing_event("reload", "")).await?;
    }
    Ok(())
}
