//! Facts: what a change of tasks has read from the server. A change is carried out on facts in memory. The script that
//! commits it compares them with what is stored then.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::task::{Channel, ChildName, PortAddress, PortDirection, QueueName, TaskAlias, TaskId};
use cronhold_store::tasks::ProcessId;

use super::keys::{items_rest, queue_rest};
use crate::pack::Pack;

/// What can be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TaskFact {
    Task(TaskId),
    /// The ports in one direction, with the numbers of their items.
    Ports(TaskId, PortDirection),
    Child(TaskId, ChildName),
    Children(TaskId),
    Alias(TaskAlias),
    Aliases(TaskId),
    State(TaskId),
    /// Items from an index, at most this many, up to the one that exceeds these bytes.
    Items(PortAddress, u64, usize, usize),
    Subscribers(Channel),
    Classes(QueueName),
    /// The last id of a task.
    LastId,
    /// A request with this key.
    Once(String),
    Process(ProcessId),
    Processes,
    /// The last entries of a queue, which are the next ones.
    Queue(QueueName, usize),
    /// Entries of `schedule` or `retry` up to this score.
    Scheduled(&'static str, String, usize),
    /// Tasks whose lease ends up to this score.
    Expired(String, usize),
    /// Steps of bare jobs whose lease ends up to this score.
    ExpiredBareJobs(String, usize),
    /// A counter of Sidekiq.
    Stat(&'static str),
    /// A bare job that a step holds.
    BareJob(String),
    /// Some ids of tasks, from this place in the set of all, which begin with the next place.
    SomeTasks(u64, usize),
    /// The number of entries of a queue.
    QueueLength(QueueName),
    /// Whether clients are subscribed to channels of Redis.
    Listeners,
}

/// The values of a fact. A missing text is empty.
pub(super) type FactValues = Vec<Vec<u8>>;

/// The facts that are known, those that a change has used, and those that it has found to be missing.
#[derive(Debug, Default)]
pub(super) struct FactTable {
    known: BTreeMap<TaskFact, FactValues>,
    used: BTreeSet<TaskFact>,
    wanted: BTreeSet<TaskFact>,
}

impl TaskFact {
    /// Name and arguments for the scripts. `compares` leaves out what others may change without affecting a change.
    fn args(&self, minute: i64, compares: bool) -> Vec<String> {
        let job = |task: &TaskId, rest: &str| format!("job:{task}:{rest}");
        let text = |text: &str| text.to_owned();
        match self {
            Self::Task(task) => vec![text("task"), task.to_string(), minute.to_string()],
            Self::Ports(task, direction) => {
                let name = if compares { "ports" } else { "sized_ports" };
                vec![text(name), task.to_string(), direction.to_string()]
            }
            Self::Child(task, name) => vec![text("field"), job(task, "children"), name.to_string()],
            Self::Children(task) => vec![text("hash"), job(task, "children")],
            Self::Alias(alias) => vec![text("field"), text("jobs:aliases"), alias.to_string()],
            Self::Aliases(task) => vec![text("set"), job(task, "aliases")],
            Self::State(task) => vec![text("hash"), job(task, "state")],
            Self::Items(port, from, limit, bytes) => {
                vec![text("items"), items_rest(port), from.to_string(), limit.to_string(), bytes.to_string()]
            }
            Self::Subscribers(channel) => vec![text("subscribers"), channel.to_string()],
            Self::Classes(queue) => vec![text("hash"), format!("workers:{queue}")],
            Self::LastId => vec![text("text"), text("jobs:last_id")],
            Self::Once(key) => vec![text("text"), format!("cronhold:once:{key}")],
            Self::Process(process) => vec![text("process"), process.to_string()],
            Self::Processes => vec![text("hash"), text("cronhold:processes")],
            Self::Queue(queue, depth) => {
                vec![text("list"), queue_rest(queue), format!("-{depth}"), text("-1"), minute.to_string()]
            }
            Self::Scheduled(set, until, limit) => vec![text("scores"), text(set), until.clone(), limit.to_string()],
            Self::ExpiredBareJobs(until, limit) => {
                vec![text("scores"), text("cronhold:bare_leases"), until.clone(), limit.to_string()]
            }
            Self::Expired(until, limit) => {
                vec![text("scores"), text("cronhold:steps"), until.clone(), limit.to_string()]
            }
            Self::Stat(name) => vec![text("text"), format!("stat:{name}")],
            Self::BareJob(step) => vec![text("field"), text("cronhold:bare"), step.clone()],
            Self::SomeTasks(from, count) => {
                vec![text("some_members"), text("jobs"), from.to_string(), count.to_string(), minute.to_string()]
            }
            Self::QueueLength(queue) => vec![text("length"), queue_rest(queue)],
            Self::Listeners => vec![text("listeners")],
        }
    }

    /// Whether a change that has used this fact depends on it. The others are protected by the record of the task or by
    /// a check of their own, or are only a hint where to look.
    const fn is_compared(&self) -> bool {
        !matches!(
            self,
            Self::State(_)
                | Self::Items(..)
                | Self::Queue(..)
                | Self::Scheduled(..)
                | Self::Expired(..)
                | Self::ExpiredBareJobs(..)
                | Self::Stat(_)
                | Self::SomeTasks(..)
        )
    }

    /// Appends the request for this fact to a list.
    pub(super) fn pack_request(&self, minute: i64, into: &mut Pack) {
        let args = self.args(minute, false);
        into.list(args.len());
        args.iter().for_each(|arg| into.text(arg));
    }

    /// How many of the values are compared.
    fn compared_values<'a>(&self, values: &'a [Vec<u8>]) -> &'a [Vec<u8>] {
        match self {
            Self::Ports(..) => {
                let mut end = 0;
                for _ in 0..3 {
                    let count: usize = values.get(end).and_then(|text| number(text)).unwrap_or(0);
                    end += 1 + count;
                }
                &values[..end.min(values.len())]
            }
            _ => values,
        }
    }
}

/// A number as the scripts write it.
pub(super) fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl FactTable {
    /// The values of a fact that a change uses. If it is not known, it is read before the change is tried again.
    pub(super) fn get(&mut self, fact: &TaskFact) -> Option<&FactValues> {
        if !self.known.contains_key(fact) {
            self.wanted.insert(fact.clone());
            return None;
        }
        if fact.is_compared() && !self.used.contains(fact) {
            self.used.insert(fact.clone());
        }
        self.known.get(fact)
    }

    /// The values of a fact that was used already.
    pub(super) fn peek(&self, fact: &TaskFact) -> Option<&FactValues> {
        self.known.get(fact)
    }

    /// Lets a fact be read together with those that are missing.
    pub(super) fn want(&mut self, fact: TaskFact) {
        if !self.known.contains_key(&fact) {
            self.wanted.insert(fact);
        }
    }

    pub(super) fn put(&mut self, fact: TaskFact, values: FactValues) {
        self.known.insert(fact, values);
    }

    /// Forgets a fact, which is then read again.
    pub(super) fn forget(&mut self, fact: &TaskFact) {
        self.known.remove(fact);
    }

    /// Forgets the facts that are not compared.
    pub(super) fn forget_hints(&mut self) {
        self.known.retain(|fact, _| fact.is_compared());
    }

    /// The facts that have to be read.
    pub(super) fn take_wanted(&mut self) -> Vec<TaskFact> {
        std::mem::take(&mut self.wanted).into_iter().collect()
    }

    pub(super) fn has_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Begins another attempt.
    pub(super) fn begin(&mut self) {
        self.used.clear();
        self.wanted.clear();
    }

    /// The facts that the script compares, in order.
    pub(super) fn used(&self) -> Vec<TaskFact> {
        self.used.iter().cloned().collect()
    }

    /// Appends the facts that are compared, with their values.
    pub(super) fn pack_used(&self, minute: i64, into: &mut Pack) {
        into.list(self.used.len());
        for fact in &self.used {
            let args = fact.args(minute, true);
            into.list(3);
            into.text(&args[0]);
            into.list(args.len() - 1);
            args[1..].iter().for_each(|arg| into.text(arg));
            let values = self.known.get(fact).map_or(&[][..], |values| fact.compared_values(values));
            into.list(values.len());
            values.iter().for_each(|value| into.text(value));
        }
    }
}
