//! What batches consist of: units, leases, and other changes.

use cronhold_core::task::{
    Channel, PortAddress, PortDirection, PortTarget, TaskAct, TaskId, TaskRefusal, TaskTarget, TaskUnit, UnitOrigin,
};
use cronhold_store::Fault;
use cronhold_store::tasks::execute::lease::{TakenStep, take_steps};
use cronhold_store::tasks::execute::step::{end_refused_step, execute_unit};
use cronhold_store::tasks::{
    ExecuteContext, LeaseRequest, LeasedStep, TaskEffects, TaskReceipt, TaskUnitError, TaskWindow,
};
use tokio::sync::oneshot;

use super::RedisTaskError;
use super::bare_jobs::take_back_lost_jobs;
use super::changes::TaskRowSet;
use super::facts::{FactTable, TaskFact};
use super::lane::LaneWork;
use super::windows::WindowRequest;

/// Entries of a queue that a lease reads first, see [`super::ready`].
const LEASE_DEPTH: usize = super::ready::FIRST_DEPTH;

/// A result for each unit.
pub(super) type UnitResultList = Vec<Result<TaskReceipt, TaskUnitError>>;

/// What a change returns, with its effects.
pub(super) type RowsResult<T> = Result<(T, TaskEffects), RedisTaskError>;

/// Units, each of which is carried out by itself.
pub(super) struct UnitWork {
    pub(super) units: Vec<TaskUnit>,
    pub(super) results: UnitResultList,
    pub(super) reply: oneshot::Sender<UnitResultList>,
}

/// A lease of steps.
pub(super) struct LeaseWork {
    pub(super) request: LeaseRequest,
    pub(super) result: Result<Vec<TakenStep>, Fault>,
    pub(super) reply: oneshot::Sender<Result<Vec<LeasedStep>, Fault>>,
}

/// One change as a function.
pub(super) struct RowsWork<T, F> {
    /// Facts that it will need.
    pub(super) wants: Vec<TaskFact>,
    pub(super) work: F,
    pub(super) result: Option<Result<T, Fault>>,
    pub(super) reply: oneshot::Sender<Result<T, Fault>>,
}

impl LaneWork for UnitWork {
    fn unit_count(&self) -> usize {
        self.units.len().max(1)
    }

    fn want_facts(&self, facts: &mut FactTable) {
        for unit in &self.units {
            match &unit.origin {
                UnitOrigin::Step { task, .. } => want_task(facts, *task),
                UnitOrigin::Request { key } => {
                    if let Some(key) = key {
                        facts.want(TaskFact::Once(key.clone()));
                    }
                    want_channel(facts, &Channel::log());
                }
            }
            unit.acts.iter().for_each(|act| want_for_act(facts, act));
        }
    }

    fn execute(&mut self, rows: &mut TaskRowSet, context: ExecuteContext) -> TaskEffects {
        self.results.clear();
        let mut all = TaskEffects::default();
        for unit in &self.units {
            let result = execute_one(rows, unit, context).map(|(receipt, effects)| {
                all.extend(effects);
                receipt
            });
            if let Err(TaskUnitError::Refused(refusal)) = &result {
                match end_refused(rows, unit, refusal, context) {
                    Ok(effects) => all.extend(effects),
                    Err(error) => {
                        self.results.push(Err(error));
                        continue;
                    }
                }
            }
            self.results.push(result);
        }
        all
    }

    fn finish(self: Box<Self>, outcome: Result<Vec<Option<TaskWindow>>, Fault>) {
        let results = match outcome {
            Ok(_) => self.results,
            Err(fault) => self.units.iter().map(|_| Err(fault.clone().into())).collect(),
        };
        // The requester may be gone.
        let _ = self.reply.send(results);
    }
}

/// Carries out one unit. If it fails, its changes are undone.
fn execute_one(
    rows: &mut TaskRowSet,
    unit: &TaskUnit,
    context: ExecuteContext,
) -> Result<(TaskReceipt, TaskEffects), TaskUnitError> {
    for act in &unit.acts {
        // What is read of these ports is returned, or is why the unit is refused, so that they must not have changed.
        if let TaskAct::Pop { port, .. } | TaskAct::Connect { from: port, .. } = act
            && let Some(address) = address_of(port)
        {
            rows.exact_ports.put(address, ());
        }
    }
    let scope = rows.begin_scope();
    execute_unit(rows, unit, context).map_err(|error| {
        rows.undo_scope(scope);
        to_unit_error(error)
    })
}

fn end_refused(
    rows: &mut TaskRowSet,
    unit: &TaskUnit,
    refusal: &TaskRefusal,
    context: ExecuteContext,
) -> Result<TaskEffects, TaskUnitError> {
    let scope = rows.begin_scope();
    end_refused_step(rows, unit, refusal, context).map_err(|error| {
        rows.undo_scope(scope);
        to_unit_error(error)
    })
}

fn to_unit_error(error: RedisTaskError) -> TaskUnitError {
    match error {
        RedisTaskError::Refused(refusal) => TaskUnitError::Refused(refusal),
        RedisTaskError::Damaged(fault) => TaskUnitError::Fault(fault),
    }
}

fn address_of(port: &PortTarget) -> Option<PortAddress> {
    match port.task {
        TaskTarget::Id(task) => Some(PortAddress { task, direction: port.direction, port: port.port.clone() }),
        TaskTarget::New(_) => None,
    }
}

/// What nearly every change of a task needs.
pub(super) fn want_task(facts: &mut FactTable, task: TaskId) {
    facts.want(TaskFact::Task(task));
    want_channel(facts, &Channel::of_task(task));
}

fn want_channel(facts: &mut FactTable, channel: &Channel) {
    channel.levels().into_iter().for_each(|level| facts.want(TaskFact::Subscribers(level)));
}

fn want_target(facts: &mut FactTable, target: TaskTarget) {
    if let TaskTarget::Id(task) = target {
        want_task(facts, task);
    }
}

fn want_port(facts: &mut FactTable, port: &PortTarget) {
    if let TaskTarget::Id(task) = port.task {
        want_task(facts, task);
        facts.want(TaskFact::Ports(task, port.direction));
    }
}

/// What an act will probably need. What is missing here is read later.
fn want_for_act(facts: &mut FactTable, act: &TaskAct) {
    match act {
        TaskAct::Take { port, .. }
        | TaskAct::Pop { port, .. }
        | TaskAct::Write { port, .. }
        | TaskAct::SetDefault { port, .. }
        | TaskAct::SetChannels { port, .. } => want_port(facts, port),
        TaskAct::Connect { from, to } => {
            want_port(facts, from);
            to.iter().for_each(|port| want_port(facts, port));
        }
        TaskAct::Create(new) => {
            facts.want(TaskFact::LastId);
            facts.want(TaskFact::Classes(new.queue.clone()));
            if let Some((TaskTarget::Id(parent), name)) = &new.parent {
                facts.want(TaskFact::Task(*parent));
                facts.want(TaskFact::Child(*parent, name.clone()));
            }
        }
        TaskAct::Delete { task } => {
            want_target(facts, *task);
            if let TaskTarget::Id(task) = task {
                facts.want(TaskFact::Children(*task));
                facts.want(TaskFact::Ports(*task, PortDirection::In));
                facts.want(TaskFact::Ports(*task, PortDirection::Out));
            }
        }
        TaskAct::Publish { channel, .. } => want_channel(facts, channel),
        TaskAct::Run { task, .. } | TaskAct::RunParent { task, .. } | TaskAct::Terminate { task, .. } => {
            want_target(facts, *task);
        }
        TaskAct::SetState { task, .. } | TaskAct::UnsetState { task, .. } | TaskAct::SetPorts { task, .. } => {
            want_target(facts, *task);
        }
        TaskAct::AddAlias { task, alias } | TaskAct::RemoveAlias { task, alias } => {
            want_target(facts, *task);
            facts.want(TaskFact::Alias(alias.clone()));
        }
        TaskAct::Adopt { parent, child, name } => {
            want_target(facts, *parent);
            want_target(facts, *child);
            if let TaskTarget::Id(parent) = parent {
                facts.want(TaskFact::Child(*parent, name.clone()));
            }
        }
        TaskAct::Disown { parent, .. } => want_target(facts, *parent),
    }
}

impl LaneWork for LeaseWork {
    fn unit_count(&self) -> usize {
        self.request.steps.len().max(1)
    }

    fn want_facts(&self, facts: &mut FactTable) {
        facts.want(TaskFact::Queue(self.request.queue.clone(), LEASE_DEPTH));
        facts.want(TaskFact::Classes(self.request.queue.clone()));
    }

    fn execute(&mut self, rows: &mut TaskRowSet, context: ExecuteContext) -> TaskEffects {
        let scope = rows.begin_scope();
        let taken = take_back_lost_jobs(rows, context.now).and_then(|()| take_steps(rows, &self.request, context));
        match taken {
            Ok((taken, mut effects)) => {
                self.result = Ok(taken);
                effects.extend(rows.effects_of_moves(&self.request.queue));
                effects
            }
            Err(error) => {
                rows.undo_scope(scope);
                self.result = Err(error.into());
                TaskEffects::default()
            }
        }
    }

    fn windows(&self) -> Option<WindowRequest> {
        let tasks = self.result.as_ref().ok()?.iter().map(|step| step.task).collect();
        Some(WindowRequest { tasks, limits: self.request.limits })
    }

    fn finish(self: Box<Self>, outcome: Result<Vec<Option<TaskWindow>>, Fault>) {
        let Self { result, reply, .. } = *self;
        let result = outcome.and_then(|windows| {
            let taken = result?;
            let leased = taken.into_iter().zip(windows).filter_map(|(taken, window)| {
                let TakenStep { step, call, is_first, .. } = taken;
                Some(LeasedStep { step, call, is_first, window: window? })
            });
            Ok(leased.collect())
        });
        // The steps of a requester that is gone are lost, and repeated.
        let _ = reply.send(result);
    }
}

impl<T, F> LaneWork for RowsWork<T, F>
where
    T: Send,
    F: FnMut(&mut TaskRowSet, ExecuteContext) -> RowsResult<T> + Send,
{
    fn want_facts(&self, facts: &mut FactTable) {
        self.wants.iter().for_each(|fact| facts.want(fact.clone()));
    }

    fn execute(&mut self, rows: &mut TaskRowSet, context: ExecuteContext) -> TaskEffects {
        let scope = rows.begin_scope();
        let (result, effects) = match (self.work)(rows, context) {
            Ok((result, effects)) => (Ok(result), effects),
            Err(error) => {
                rows.undo_scope(scope);
                (Err(error.into()), TaskEffects::default())
            }
        };
        self.result = Some(result);
        effects
    }

    fn finish(self: Box<Self>, outcome: Result<Vec<Option<TaskWindow>>, Fault>) {
        let executed = self.result.unwrap_or_else(|| Err(cronhold_store_remote::closed()));
        let _ = self.reply.send(outcome.and(executed));
    }
}
