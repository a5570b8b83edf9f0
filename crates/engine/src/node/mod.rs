//! A node: its start, and the loop that builds batches of commands, takes turns on the store, and performs the effects.
//!
//! The node is a few parts with private state, each in a file of its own: `Agenda` is what it will do, `LocalPrograms`,
//! `LocalDeliveries` and `LocalProbes` what it runs, delivers and checks, `Membership` who else is alive,
//! `PendingCommands` and `PendingHints` what waits to be handled, `StoreHealth` and `NodeClock` whether it may act. The
//! files below this one connect these parts.

mod batch;
mod effects;
mod heartbeats;
mod job_checks;
mod outcomes;
mod pool_checks;
mod prepared_claims;
mod recovery;
mod reload;
mod watchdog;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use cronhold_core::command::Command;
use cronhold_core::policy::retention::KeptSpans;
use cronhold_core::record::{Actor, NodeRecord, Record, RecordKey, RunOwner};
use cronhold_core::{DecisionContext, JobId, NodeId, RunId, When};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{
    Fault, InFlightCommit, UnreadableRecord, WriterSession, has_foreign_nodes, lock_mutex, trim_outputs,
};

use self::batch::{CommandBatch, InputShare};
use self::prepared_claims::PreparedClaims;
use crate::agenda::Agenda;
use crate::claim_lag::ClaimLag;
use crate::claim_order::ClaimOrder;
use crate::counters::Counters;
use crate::expiry::{self, ExpiryResult, ExpiryStep};
use crate::heartbeater::Heartbeater;
use crate::intake::{NodeHandle, NodeInput, RequestError};
use crate::local_deliveries::LocalDeliveries;
use crate::local_probes::LocalProbes;
use crate::local_programs::LocalPrograms;
use crate::membership::{Membership, wait_for_name};
use crate::node_clock::NodeClock;
use crate::pending_commands::PendingCommands;
use crate::pending_hints::PendingHints;
use crate::plan::PlanItem;
use crate::ports::{EngineEvent, NodePorts};
use crate::race::{First, race};
use crate::retention::{self, EXPIRE_EVERY, TRIM_EVERY, TRIM_STEP};
use crate::run_subscriptions::RunSubscriptions;
use crate::store_health::{BACKOFF_MAX, RetryBackoff, StoreHealth};
use crate::unconfirmed_commits::UnconfirmedCommits;
use crate::watchdog_progress::WatchdogProgress;

/// The longest sleep of the loop, so that it notices steps of the clock.
const SLEEP_MAX: Span = Span::from_secs(1);
/// The watchdog runs this long after a step of the clock.
const WATCHDOG_AFTER_STEP: Span = Span::from_secs(10);

/// The settings of a node.
#[derive(Debug, Clone)]
pub struct Options {
    /// The identity of the node.
    pub node: NodeId,
    /// The name of the node, for display.
    pub name: String,
    /// Runs of backlogs that the node starts in a second.
    pub catch_up_rate: u32,
    /// Programs that the node runs at once.
    pub programs_max: usize,
    /// Records that the node caches; up to twice as many while they change.
    pub cache_max: usize,
    /// Whether the node starts even if another live node has its name.
    pub force: bool,
    /// The number of claims of one instant from which on they are decided shortly before it.
    pub prepare_ahead_min: usize,
    /// How long things are kept that no job says anything about.
    pub kept: KeptSpans,
    /// Which channels of runs have subscribers.
    pub run_subscriptions: RunSubscriptions,
    /// The total size of outputs in bytes beyond which the oldest are deleted; no limit if `None`.
    pub outputs_max: Option<u64>,
}

impl Options {
    /// Settings with all defaults.
    pub fn new(node: NodeId, name: impl Into<String>) -> Self {
        Self {
            node,
            name: name.into(),
            catch_up_rate: 100,
            programs_max: 10_000,
            cache_max: 150_000,
            force: false,
            prepare_ahead_min: 8,
            kept: KeptSpans::default(),
            run_subscriptions: RunSubscriptions::default(),
            outputs_max: None,
        }
    }
}

/// Why a node cannot start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The store failed in a way that a retry does not help.
    #[error(transparent)]
    Store(#[from] Fault),
    /// Another live node has the same name.
    #[error("another running node has the name `{name}` ({other})")]
    NameTaken {
        name: String,
        /// The other node.
        other: NodeId,
    },
}

/// Jobs that are pruned in one pass of the loop. Each takes a query.
const PRUNES_MAX: usize = 64;

/// The time after which a record that still cannot be read is reported again.
const REPORT_AGAIN: Span = Span::from_secs(3_600);
/// Unreadable records that are remembered; others are counted only.
const REPORTED_MAX: usize = 10_000;

/// A node that can be run.
#[derive(Debug)]
pub struct Engine {
    ports: NodePorts,
    options: Options,
    world: DecisionContext,
    handle: NodeHandle,
}

/// What stays the same while a node runs.
#[derive(Debug)]
struct NodeContext {
    ports: NodePorts,
    options: Options,
    handle: NodeHandle,
    me: RunOwner,
    /// When each record that cannot be read was reported, by its key and reason.
    reported: Mutex<BTreeMap<String, Span>>,
}

/// A running node.
#[derive(Debug)]
struct NodeLoop {
    context: NodeContext,
    world: DecisionContext,
    session: WriterSession,
    clock: NodeClock,
    store_health: StoreHealth,
    agenda: Agenda,
    programs: LocalPrograms,
    deliveries: LocalDeliveries,
    probes: LocalProbes,
    membership: Membership,
    commands: PendingCommands,
    hints: PendingHints,
    watchdog: WatchdogProgress,
    unconfirmed: UnconfirmedCommits,
    input_share: InputShare,
    claim_lag: ClaimLag,
    /// Jobs whose surplus runs are to be deleted.
    to_prune: BTreeSet<JobId>,
    /// Whether it was reported that the keeper cannot start programs.
    has_keeper_failed: bool,
    /// How often the node could start runs again: it ended a drain, or its keeper works.
    restarts: u32,
    is_stopping: bool,
}

/// A batch whose units are submitted.
struct SubmittedBatch {
    commit: InFlightCommit,
    batch: CommandBatch,
}

impl Engine {
    /// Creates a node, and the handle that sends requests to it.
    pub fn new(ports: NodePorts, options: Options, world: DecisionContext) -> (Self, NodeHandle) {
        let handle = NodeHandle::new(Arc::clone(&ports.clock), Arc::clone(&ports.entropy));
        let world = DecisionContext { has_tasks: ports.store.task_store().is_some(), ..world };
        (Self { ports, options, world, handle: handle.clone() }, handle)
    }

    /// Runs the node until its handle stops it. While the store is unreachable at the start, the node retries.
    pub async fn run(self) -> Result<(), EngineError> {
        let Self { ports, options, world, handle } = self;
        let mut backoff = RetryBackoff::default();
        let mut node = loop {
            match NodeLoop::start(&ports, &options, &world, &handle).await {
                Ok(node) => break node,
                Err(EngineError::Store(fault)) if fault.is_transient() => {
                    ports.feed.on_event(&EngineEvent::StoreUnavailable(&fault));
                    ports.clock.sleep(backoff.advance()).await;
                    if handle.is_stopping() {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        };
        let heartbeater = node.membership.heartbeater().clone();
        race(node.run(), heartbeater.run(&ports)).await;
        Ok(())
    }
}

impl NodeContext {
    fn emit(&self, event: &EngineEvent<'_>) {
        self.ports.feed.on_event(event);
    }

    fn uptime(&self) -> Span {
        self.ports.clock.uptime()
    }

    fn counters(&self) -> &Counters {
        &self.handle.counters
    }

    /// Counts a record that cannot be read, and reports it, unless that was done within the last hour.
    fn report_unreadable(&self, record: &UnreadableRecord) {
        Counters::add(&self.counters().unreadable, 1);
        let (now, name) = (self.uptime(), format!("{:?} {}", record.key, record.reason));
        let mut reported = lock_mutex(&self.reported);
        reported.retain(|_, at| now.minus(*at) < REPORT_AGAIN);
        if reported.len() < REPORTED_MAX && !reported.contains_key(&name) {
            reported.insert(name, now);
            drop(reported);
            self.emit(&EngineEvent::RecordUnreadable(record));
        }
    }
}

impl NodeLoop {
    async fn start(
        ports: &NodePorts,
        options: &Options,
        world: &DecisionContext,
        handle: &NodeHandle,
    ) -> Result<Self, EngineError> {
        let session = WriterSession::new(ports.store.clone(), options.cache_max).await?;
        // Every start is a new writer, so the writer's number distinguishes the processes of a node.
        let me = RunOwner { node: options.node, incarnation: session.writer() };
        let is_shared = ports.store.is_shared();
        let now = if is_shared { ports.store.time().await? } else { ports.clock.now() };
        let fresh = NodeRecord::new(options.node, options.name.clone(), me.incarnation, now);
        let keeper_problem = world.keeper_problem.as_deref().map(str::to_owned);
        let (labels, zones) = ((*world.labels).clone(), world.zones_version.to_string());
        let record = NodeRecord { labels, zones, keeper_problem, ..fresh };
        if is_shared
            && !options.force
            && let Some(rival) = wait_for_name(ports, &record).await?
        {
            return Err(EngineError::NameTaken { name: record.name, other: rival.id });
        }
        let heartbeater = Heartbeater::new(record.clone(), is_shared);
        let has_foreign = has_foreign_nodes(&*ports.store);
        let mut node = Self {
            context: NodeContext {
                ports: ports.clone(),
                options: options.clone(),
                handle: handle.clone(),
                me,
                reported: Mutex::default(),
            },
            world: DecisionContext { is_shared, has_foreign, nodes: [Arc::new(record)].into(), ..world.clone() },
            session,
            clock: NodeClock::new(is_shared),
            store_health: StoreHealth::default(),
            agenda: Agenda::default(),
            programs: LocalPrograms::new(heartbeater.clone()),
            deliveries: LocalDeliveries::default(),
            probes: LocalProbes::default(),
            membership: Membership::new(me, heartbeater.clone()),
            commands: PendingCommands::default(),
            hints: PendingHints::default(),
            // A shared store may have lost writes while no node was running.
            watchdog: WatchdogProgress { is_urgent: is_shared, ..WatchdogProgress::default() },
            unconfirmed: UnconfirmedCommits::default(),
            input_share: InputShare::default(),
            claim_lag: ClaimLag::default(),
            to_prune: BTreeSet::new(),
            has_keeper_failed: false,
            restarts: 0,
            is_stopping: false,
        };
        heartbeater.send_heartbeat(ports).await?;
        node.apply_heartbeats();
        node.recover().await?;
        node.plan_upkeep();
        Ok(node)
    }

    /// Plans the upkeep that every node does from its start on.
    fn plan_upkeep(&mut self) {
        let now = self.read_clock();
        self.agenda.put(PlanItem::Watchdog, now.plus(Self::WATCHDOG_EVERY));
        self.agenda.put(PlanItem::CheckJobs(None), now.plus(Self::CHECK_JOBS_AFTER));
        self.agenda.put(PlanItem::CheckPools(None), now.plus(Self::CHECK_JOBS_AFTER));
        self.agenda.put(PlanItem::Expire(ExpiryStep::FIRST), now.plus(expiry::FIRST_AFTER));
        if self.context.options.outputs_max.is_some() || self.context.ports.store.limits().outputs.is_some() {
            self.agenda.put(PlanItem::TrimOutputs(None), now.plus(expiry::FIRST_AFTER));
        }
    }

    /// The loop. While one batch is being committed, the next is decided on top of it.
    async fn run(&mut self) {
        let mut submitted: Option<SubmittedBatch> = None;
        let mut claims: Option<PreparedClaims> = None;
        while !self.is_stopping || submitted.is_some() {
            self.apply_heartbeats();
            self.receive_hints().await;
            let now = self.read_clock();
            let (mut chores, mut prunes) = (Vec::new(), Vec::new());
            let next = match self.take_prepared(&mut claims, now) {
                Some(prepared) => Some(prepared),
                None => {
                    let commands = self.next_commands(now, &mut chores);
                    prunes = self.take_prunes(&mut chores);
                    if commands.is_empty() { None } else { self.prepare(now, commands).await }
                }
            };
            let completed = match submitted.take() {
                Some(SubmittedBatch { commit, batch }) => Some((self.session.complete(commit).await, batch)),
                None => None,
            };
            let was_idle = next.is_none() && completed.is_none() && chores.is_empty() && prunes.is_empty();
            if let Some((mut prepared, batch)) = next {
                // Decide no-write results again only if a unit of the previous commit was rejected. Doing so because
                // the previous batch was itself decided again could livelock.
                if completed.is_some() && self.session.had_failures() {
                    prepared.invalidate_unwritten();
                }
                submitted = Some(SubmittedBatch { commit: self.session.submit(prepared).await, batch });
            }
            if let Some((outcomes, batch)) = completed {
                self.apply_outcomes(outcomes, batch).await;
            }
            self.prune(prunes, now).await;
            if !chores.is_empty() {
                // A chore compares the store with what the node knows, so no commit may be in flight.
                if let Some(SubmittedBatch { commit, batch }) = submitted.take() {
                    let outcomes = self.session.complete(commit).await;
                    self.apply_outcomes(outcomes, batch).await;
                }
                for chore in chores {
                    self.do_chore(chore, now).await;
                }
            }
            if was_idle && !self.is_stopping {
                if claims.is_none() {
                    claims = self.prepare_ahead(now).await;
                }
                // Preparing many claims takes a while.
                let now = self.read_clock();
                self.wait(now, claims.as_ref().map(PreparedClaims::at)).await;
            }
        }
        self.refuse_requests();
        self.membership.heartbeater().announce_shutdown(&self.context.ports).await;
    }

    /// Refuses all requests that still wait, because the node stops.
    fn refuse_requests(&mut self) {
        for input in self.context.handle.inputs.take(usize::MAX) {
            if let NodeInput::Request { reply, .. } = input {
                reply.send(Err(RequestError::Stopping));
            }
        }
        self.commands.refuse_requests();
    }

    /// The current time by the clock that the node uses. Handles a step of that clock.
    fn read_clock(&mut self) -> Instant {
        let (now, step) = self.clock.read(&*self.context.ports.clock);
        if let Some(step) = step {
            Counters::add(&self.context.counters().clock_steps, 1);
            self.context.emit(&EngineEvent::ClockStep { forward: step.forward, by: step.by });
            // The times in the plan were computed before the step.
            self.agenda.put_by(PlanItem::Watchdog, now.plus(WATCHDOG_AFTER_STEP));
            self.membership.heartbeater().send_soon();
        }
        now
    }

    /// The order in which nodes act, as this node sees it now.
    fn claim_order(&self) -> ClaimOrder<'_> {
        ClaimOrder {
            me: self.context.me.node,
            world: &self.world,
            session: &self.session,
            programs: &self.programs,
            hints: &self.hints,
            extra_wait: self.claim_lag.extra_wait(self.context.uptime()),
        }
    }

    /// Records whether the store works.
    fn record_store_result(&mut self, fault: Option<&Fault>) {
        match fault {
            Some(fault) => {
                if self.store_health.record_failure(self.context.uptime()) {
                    self.context.emit(&EngineEvent::StoreUnavailable(fault));
                }
            }
            None => {
                if self.store_health.record_success() {
                    // It may have lost writes.
                    self.watchdog.is_urgent = true;
                    self.context.emit(&EngineEvent::StoreAvailable);
                }
            }
        }
        if self.store_health.has_unknown_outcome() && self.store_health.is_available() {
            self.agenda.put(PlanItem::Watchdog, When::Now);
        }
    }

    /// Waits for an input, a heartbeat, a change notification, or the next item of the plan.
    async fn wait(&mut self, now: Instant, prepared: Option<Instant>) {
        let uptime = self.context.uptime();
        let ports = &self.context.ports;
        if let Some(retry_in) = self.store_health.retry_in(uptime) {
            return ports.clock.sleep(retry_in).await;
        }
        let planned = self.agenda.next_in(now).unwrap_or(SLEEP_MAX).min(SLEEP_MAX);
        let planned = self.until_prepared(prepared, now).map_or(planned, |until| planned.min(until));
        let planned = self.commands.next_retry_in(uptime).map_or(planned, |retry| planned.min(retry));
        let stale = if self.membership.is_fresh(uptime) { None } else { Some(SLEEP_MAX) };
        let wait = self.clock.hold(uptime).max(stale).map_or(planned, |hold| hold.min(SLEEP_MAX));
        let inputs = race(self.context.handle.inputs.ready(), self.membership.heartbeater().results_ready());
        let hints =
            async { if self.world.is_shared { ports.store.hints().await } else { std::future::pending().await } };
        let first = race(race(inputs, ports.clock.sleep(wait)), hints).await;
        if let First::Right(hints) = first {
            self.record_hints(hints);
        }
    }

    async fn do_chore(&mut self, chore: PlanItem, now: Instant) {
        let done = match &chore {
            PlanItem::Watchdog => self.run_watchdog(now).await,
            PlanItem::Reap => self.reap().await,
            PlanItem::ReloadChanges => self.reload_changes(now).await,
            PlanItem::CheckJobs(after) => self.check_jobs(after.clone(), now).await,
            PlanItem::CheckPools(after) => self.check_pools(after.clone(), now).await,
            PlanItem::Expire(step) => self.expire(step, now).await,
            PlanItem::TrimOutputs(after) => self.trim_outputs(*after, now).await,
            PlanItem::Prune(_)
            | PlanItem::EndPause(_)
            | PlanItem::Wake(_)
            | PlanItem::Deliver(_)
            | PlanItem::Batch(_)
            | PlanItem::Fire(..)
            | PlanItem::CatchUp(..) => Ok(()),
        };
        self.record_chore(chore, done, now);
    }

    /// Plans a chore again that failed.
    fn record_chore(&mut self, chore: PlanItem, done: Result<(), Fault>, now: Instant) {
        match (chore, done) {
            (chore, Err(fault)) if fault.is_transient() => {
                self.agenda.put(chore, now.plus(BACKOFF_MAX));
                self.record_store_result(Some(&fault));
            }
            // A part of the store is damaged. The rest works, so only this chore waits.
            (chore, Err(fault)) => {
                self.agenda.put(chore, now.plus(Self::WATCHDOG_EVERY));
                self.context.emit(&EngineEvent::StoreDamaged(&fault));
            }
            (_, Ok(())) => {}
        }
    }

    /// Takes the jobs to prune out of the chores. Returns those of this pass.
    fn take_prunes(&mut self, chores: &mut Vec<PlanItem>) -> Vec<JobId> {
        let is_prune = |chore: &mut PlanItem| matches!(chore, PlanItem::Prune(_));
        for chore in chores.extract_if(.., is_prune) {
            if let PlanItem::Prune(job) = chore {
                self.to_prune.insert(job);
            }
        }
        (0..PRUNES_MAX).map_while(|_| self.to_prune.pop_first()).collect()
    }

    /// Declares runs of nodes that are gone as lost.
    async fn reap(&mut self) -> Result<(), Fault> {
        let ports = &self.context.ports;
        self.membership.update_live_nodes(&mut self.world, ports);
        let order = ClaimOrder {
            me: self.context.me.node,
            world: &self.world,
            session: &self.session,
            programs: &self.programs,
            hints: &self.hints,
            extra_wait: Span::ZERO,
        };
        let commands = self.membership.reap(&*ports.store, order, ports.clock.uptime()).await?;
        self.push_own(&Actor::Watchdog, commands);
        Ok(())
    }

    /// Looks for runs of jobs that are to be deleted. The commit compares them, so others may be in flight.
    async fn prune(&mut self, jobs: Vec<JobId>, now: Instant) {
        for job in jobs {
            let done = self.prune_job(&job).await;
            self.record_chore(PlanItem::Prune(job), done, now);
        }
    }

    async fn prune_job(&mut self, job: &JobId) -> Result<(), Fault> {
        let keys = [RecordKey::Job(job.clone()), RecordKey::JobState(job.clone())];
        let cached = keys.iter().filter_map(|key| self.session.cached(key)).cloned().collect::<Vec<_>>();
        let records = if cached.len() == keys.len() {
            cached
        } else {
            let found = self.load_readable(keys.to_vec()).await?;
            found.into_iter().filter_map(|(_, stored)| Some(stored?.record)).collect()
        };
        let [Record::Job(definition), Record::JobState(state)] = records.as_slice() else { return Ok(()) };
        let retain = &definition.job.retain;
        let surplus = retention::surplus_runs(&*self.context.ports.store, job, retain, state.kept).await?;
        surplus.unreadable.iter().for_each(|record| self.context.report_unreadable(record));
        self.push_own(&Actor::Retention, surplus.commands);
        Ok(())
    }

    async fn expire(&mut self, step: &ExpiryStep, now: Instant) -> Result<(), Fault> {
        let kept = &self.context.options.kept;
        let ExpiryResult { commands, unreadable, next } =
            expiry::take_step(&*self.context.ports.store, step, kept, now).await?;
        unreadable.iter().for_each(|record| self.context.report_unreadable(record));
        self.push_own(&Actor::Retention, commands);
        let (next, wait) = next.map_or((ExpiryStep::FIRST, EXPIRE_EVERY), |next| (next, expiry::STEP));
        self.agenda.put(PlanItem::Expire(next), now.plus(wait));
        Ok(())
    }

    /// Deletes the oldest outputs if all of them together are too large, a page at a time.
    async fn trim_outputs(&mut self, after: Option<RunId>, now: Instant) -> Result<(), Fault> {
        let limit = self.context.options.outputs_max.unwrap_or(u64::MAX);
        let trimmed = trim_outputs(&*self.context.ports.store, after, limit).await?;
        trimmed.unreadable.iter().for_each(|record| self.context.report_unreadable(record));
        let wait = if trimmed.next.is_some() { TRIM_STEP } else { TRIM_EVERY };
        self.agenda.put(PlanItem::TrimOutputs(trimmed.next), now.plus(wait));
        Ok(())
    }

    fn push_own(&mut self, actor: &Actor, commands: Vec<Command>) {
        for command in commands {
            self.commands.push_own(actor.clone(), command);
        }
    }
}
