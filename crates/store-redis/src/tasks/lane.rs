//! Carries out batches of work: reads the facts that are missing, decides everything in memory, and commits it with one
//! script call. There is one batch at a time; what is requested meanwhile makes the next one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cronhold_schedule::Instant;
use cronhold_store::Fault;
use cronhold_store::tasks::{ExecuteContext, TaskBoard, TaskEffects, TaskWindow};
use cronhold_store_remote::closed;
use cronhold_store_remote::faults::as_unsent;
use redis::Value;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::changes::TaskRowSet;
use super::commands::{CommandList, commands_of};
use super::facts::{FactTable, TaskFact, number};
use super::scripts::{COMMIT, FETCH, TaskScripts};
use super::windows::{WindowRequest, byte_list};
use crate::pack::Pack;
use crate::reply;
use crate::tasks::RedisTaskError;

/// Work of one batch, in units.
const BATCH_UNITS: usize = 256;

/// Attempts to commit a batch. Each one that fails means that another process has committed something.
const ATTEMPTS_MAX: usize = 2_000;

/// After this many failed attempts a batch is halved, so that others disturb it less.
const ATTEMPTS_BEFORE_HALVING: usize = 3;

/// Rounds in which missing facts are read. Each one reads at least one more.
const ROUNDS_MAX: usize = 100_000;

/// A part of a batch. It is carried out again if the batch has to be repeated.
pub(super) trait LaneWork: Send {
    /// The amount of work, in units.
    fn unit_count(&self) -> usize {
        1
    }

    /// Facts that it will probably need.
    fn want_facts(&self, facts: &mut FactTable);

    /// Carries out the work on the rows, and keeps the result until the batch is committed.
    fn execute(&mut self, rows: &mut TaskRowSet, context: ExecuteContext) -> TaskEffects;

    /// The windows that are read together with the commit.
    fn windows(&self) -> Option<WindowRequest> {
        None
    }

    /// Receives the outcome of the batch, and the windows.
    fn finish(self: Box<Self>, outcome: Result<Vec<Option<TaskWindow>>, Fault>);
}

/// Takes requests for the next batches. The queue has no limit of its own: each requester waits for its reply.
#[derive(Debug)]
pub(super) struct TaskLane {
    requests: UnboundedSender<Box<dyn LaneWork>>,
}

/// What carries out batches.
struct LaneRunner {
    committer: BatchCommitter,
    requests: UnboundedReceiver<Box<dyn LaneWork>>,
    waiting: VecDeque<Box<dyn LaneWork>>,
}

/// Decides and commits one batch.
struct BatchCommitter {
    scripts: Arc<TaskScripts>,
    board: Arc<TaskBoard>,
    /// Names this process in reports of arrivals.
    token: String,
    /// Whether the server knows all subscribers to channels.
    counts_listeners: bool,
    largest_id: AtomicU64,
}

/// Why a batch was not committed.
enum BatchAttemptError {
    /// Others have changed what it depends on. The facts that have changed are forgotten.
    Conflict,
    Fault(Fault),
}

impl TaskLane {
    /// Starts the lane, which ends when this is dropped.
    pub(super) fn start(
        runtime: &tokio::runtime::Handle,
        scripts: Arc<TaskScripts>,
        board: Arc<TaskBoard>,
        token: String,
        counts_listeners: bool,
    ) -> Self {
        let (sender, requests) = mpsc::unbounded_channel();
        let committer = BatchCommitter { scripts, board, token, counts_listeners, largest_id: AtomicU64::new(0) };
        let runner = LaneRunner { committer, requests, waiting: VecDeque::new() };
        runtime.spawn(runner.run());
        Self { requests: sender }
    }

    /// Adds work to the next batch.
    pub(super) fn add(&self, work: Box<dyn LaneWork>) {
        if let Err(unsent) = self.requests.send(work) {
            unsent.0.finish(Err(closed()));
        }
    }
}

impl LaneRunner {
    async fn run(mut self) {
        while let Some(batch) = self.next_batch().await {
            self.run_batch(batch).await;
        }
    }

    /// Waits for requests; `None` once nothing can request anything.
    async fn next_batch(&mut self) -> Option<Vec<Box<dyn LaneWork>>> {
        if self.waiting.is_empty() {
            self.waiting.push_back(self.requests.recv().await?);
        }
        while let Ok(more) = self.requests.try_recv() {
            self.waiting.push_back(more);
        }
        let (mut batch, mut units) = (Vec::new(), 0);
        while let Some(work) = self.waiting.pop_front() {
            units += work.unit_count();
            batch.push(work);
            if units >= BATCH_UNITS {
                break;
            }
        }
        Some(batch)
    }

    async fn run_batch(&mut self, mut batch: Vec<Box<dyn LaneWork>>) {
        let mut facts = FactTable::default();
        let mut minute = None;
        let mut outcome = Err(Fault::Unavailable("other processes change the same tasks all the time".to_owned()));
        for attempt in 1..=ATTEMPTS_MAX {
            let now = match self.committer.scripts.now().await.map_err(as_unsent) {
                Ok(now) => now,
                Err(fault) => {
                    outcome = Err(fault);
                    break;
                }
            };
            if minute.replace(now.secs().div_euclid(60)) != Some(now.secs().div_euclid(60)) {
                facts = FactTable::default();
            }
            if attempt > ATTEMPTS_BEFORE_HALVING && batch.len() > 1 {
                let rest = batch.split_off(batch.len() / 2);
                rest.into_iter().rev().for_each(|work| self.waiting.push_front(work));
            }
            match self.committer.attempt(&mut batch, &mut facts, now).await {
                Ok(windows) => {
                    outcome = Ok(windows);
                    break;
                }
                Err(BatchAttemptError::Conflict) => {}
                Err(BatchAttemptError::Fault(fault)) => {
                    outcome = Err(fault);
                    break;
                }
            }
        }
        match outcome {
            Ok(windows) => batch.into_iter().zip(windows).for_each(|(work, windows)| work.finish(Ok(windows))),
            Err(fault) => batch.into_iter().for_each(|work| work.finish(Err(fault.clone()))),
        }
    }
}

impl BatchCommitter {
    /// Carries out a batch once. Returns the windows of each work.
    async fn attempt(
        &self,
        batch: &mut [Box<dyn LaneWork>],
        facts: &mut FactTable,
        now: Instant,
    ) -> Result<Vec<Vec<Option<TaskWindow>>>, BatchAttemptError> {
        let (mut rows, effects) = self.decide(batch, facts, now).await.map_err(BatchAttemptError::Fault)?;
        let commands = commands_of(&mut rows, self.scripts.keys(), &effects, &self.token);
        let (minute, is_incomplete) = (rows.minute(), rows.take_incomplete());
        *facts = rows.facts;
        let commands = match commands {
            Ok(commands) if !is_incomplete => commands,
            // The commands depend on facts too. They are read, and everything is decided again.
            Ok(_) => {
                self.fetch(facts, minute).await.map_err(BatchAttemptError::Fault)?;
                return Err(BatchAttemptError::Conflict);
            }
            Err(error) => return Err(BatchAttemptError::Fault(error.into())),
        };
        let windows: Vec<WindowRequest> = batch.iter().map(|work| work.windows().unwrap_or_else(no_windows)).collect();
        let found = self.commit(facts, commands, &windows, minute).await?;
        self.board.publish(TaskEffects { messages: Vec::new(), ..effects });
        Ok(found)
    }

    /// Decides a batch on facts, and reads those that are missing.
    async fn decide(
        &self,
        batch: &mut [Box<dyn LaneWork>],
        facts: &mut FactTable,
        now: Instant,
    ) -> Result<(TaskRowSet, TaskEffects), Fault> {
        let minute = now.secs().div_euclid(60);
        facts.begin();
        if self.counts_listeners {
            facts.want(TaskFact::Listeners);
        }
        batch.iter().for_each(|work| work.want_facts(facts));
        for _ in 0..ROUNDS_MAX {
            if facts.has_wanted() {
                self.fetch(facts, minute).await?;
            }
            facts.begin();
            let mut rows = TaskRowSet::new(std::mem::take(facts), now, self.largest_id.load(Ordering::Relaxed));
            let has_listeners = !self.counts_listeners
                || rows.fact(&TaskFact::Listeners).is_some_and(|values| values[..] == [b"1".to_vec()]);
            let context = ExecuteContext { now, has_listeners };
            let (mut all, mut is_incomplete) = (TaskEffects::default(), rows.take_incomplete());
            for work in batch.iter_mut() {
                let effects = work.execute(&mut rows, context);
                match rows.take_incomplete() {
                    true => {
                        is_incomplete = true;
                        rows.undo();
                    }
                    false => {
                        rows.keep();
                        all.extend(effects);
                    }
                }
            }
            if !is_incomplete {
                return Ok((rows, all));
            }
            *facts = rows.facts;
        }
        Err(Fault::Permanent("a change of tasks depends on too much".to_owned()))
    }

    async fn fetch(&self, facts: &mut FactTable, minute: i64) -> Result<(), Fault> {
        let wanted = facts.take_wanted();
        let mut pack = Pack::default();
        pack.list(wanted.len());
        wanted.iter().for_each(|fact| fact.pack_request(minute, &mut pack));
        let reply = self.scripts.call(&FETCH, pack).await.map_err(as_unsent)?;
        let mut parts = reply::list(reply)?.into_iter();
        let mut next = || parts.next().unwrap_or(Value::Nil);
        self.scripts.note_time(next(), next())?;
        for (fact, values) in wanted.into_iter().zip(reply::list(next())?) {
            let values = byte_list(values)?;
            if fact == TaskFact::LastId {
                let id = values.first().and_then(|text| number(text)).unwrap_or(0);
                self.largest_id.fetch_max(id, Ordering::Relaxed);
            }
            facts.put(fact, values);
        }
        for extra in reply::list(next())? {
            let [id, _, values] = <[Value; 3]>::try_from(reply::list(extra)?)
                .map_err(|found| reply::unexpected("a task", &Value::Array(found)))?;
            if let Ok(id) = cronhold_core::task::TaskId::parse(&reply::text(id)?) {
                let fact = TaskFact::Task(id);
                if facts.peek(&fact).is_none() {
                    facts.put(fact, byte_list(values)?);
                }
            }
        }
        Ok(())
    }

    async fn commit(
        &self,
        facts: &mut FactTable,
        commands: CommandList,
        windows: &[WindowRequest],
        minute: i64,
    ) -> Result<Vec<Vec<Option<TaskWindow>>>, BatchAttemptError> {
        let mut pack = Pack::default();
        pack.list(4);
        facts.pack_used(minute, &mut pack);
        let check_facts: Vec<TaskFact> = commands.pack(&mut pack);
        pack.list(windows.len());
        windows.iter().for_each(|request| request.pack(minute, &mut pack));
        let fault = BatchAttemptError::Fault;
        let reply = self.scripts.call(&COMMIT, pack).await.map_err(fault)?;
        let mut parts = reply::list(reply).map_err(fault)?.into_iter();
        let mut next = || parts.next().unwrap_or(Value::Nil);
        self.scripts.note_time(next(), next()).map_err(fault)?;
        let numbers = |value: Value| -> Result<Vec<usize>, Fault> {
            let values = reply::list(value)?;
            values.iter().map(|value| Ok(usize::try_from(reply::number(value)?).unwrap_or(usize::MAX))).collect()
        };
        let (stale_facts, stale_checks) = (numbers(next()).map_err(fault)?, numbers(next()).map_err(fault)?);
        if !stale_facts.is_empty() || !stale_checks.is_empty() {
            tracing::trace!(
                event = "redis_tasks_conflict",
                facts = stale_facts.len(),
                checks = stale_checks.len(),
                "other processes have changed the same tasks; deciding again"
            );
            let used = facts.used();
            let stale = stale_facts.iter().filter_map(|index| used.get(index.checked_sub(1)?));
            let checked = stale_checks.iter().filter_map(|index| check_facts.get(index.checked_sub(1)?));
            stale.chain(checked).for_each(|fact| facts.forget(fact));
            facts.forget_hints();
            return Err(BatchAttemptError::Conflict);
        }
        let found = reply::list(next()).map_err(fault)?;
        let read = |(request, reply): (&WindowRequest, Value)| request.read(reply, minute);
        windows.iter().zip(found).map(read).collect::<Result<_, _>>().map_err(fault)
    }
}

fn no_windows() -> WindowRequest {
    WindowRequest { tasks: Vec::new(), limits: cronhold_store::tasks::WindowLimits::STEP }
}

impl From<RedisTaskError> for BatchAttemptError {
    fn from(error: RedisTaskError) -> Self {
        Self::Fault(error.into())
    }
}
