//! The part of a store that a foreign system uses too: its job definitions, its events and its runs. The store only
//! transports them and does not know what they mean.

use std::fmt;
use std::future::{pending, ready};

use cronhold_core::NodeId;
use cronhold_core::record::ProgramExit;
use cronhold_schedule::{Instant, Span};

use crate::{Fault, Pending, Store};

/// Whether foreign nodes run the jobs of this store too. False for a store that is not shared with a foreign system.
pub fn has_foreign_nodes(store: &dyn Store) -> bool {
    store.shared().is_some_and(SharedStore::has_foreign_nodes)
}

/// The part of a store that a foreign system uses too.
pub trait SharedStore: Send + Sync + fmt::Debug {
    /// Whose forms the definitions have.
    fn system(&self) -> ForeignSystem {
        ForeignSystem::Cronken
    }

    /// Whether foreign nodes run the same jobs, so that definitions have to be read by their rules.
    fn has_foreign_nodes(&self) -> bool;

    /// Waits for events and returns them, the oldest first. Events that were sent while the connection was down are lost.
    fn events(&self) -> Pending<'_, Vec<SharedEvent>>;

    /// Sends an event to all nodes, this one included.
    fn send<'a>(&'a self, event: &'a str) -> Pending<'a, Result<(), Fault>>;

    /// Reads the definitions with these names, or all that exist or were settled once. It also finds out whether there are
    /// foreign nodes.
    fn forms<'a>(&'a self, names: Option<&'a [String]>) -> Pending<'a, Result<Vec<SharedDefinition>, Fault>>;

    /// Updates definitions, each only if its text is still the one that was found. Returns for each whether it was.
    fn settle<'a>(&'a self, forms: &'a [DefinitionUpdate]) -> Pending<'a, Result<Vec<bool>, Fault>>;

    /// Reads at most `limit` foreign runs of one job or of all jobs: those that are running, and then those that ended last,
    /// the latest start first. Unreadable entries are omitted.
    fn foreign_runs<'a>(&'a self, job: Option<&'a str>, limit: usize) -> Pending<'a, Result<Vec<SharedRun>, Fault>>;

    /// Waits until other programs have changed definitions, and returns their names. For a system whose clients send
    /// events instead, it never returns.
    fn definition_changes(&self) -> Pending<'_, Vec<String>> {
        Box::pin(pending())
    }

    /// Shows a node to the clients of the foreign system while it runs. Refused if another running node has the name,
    /// unless `is_forced`.
    fn register_node<'a>(
        &'a self,
        _name: &'a str,
        _node: NodeId,
        _is_forced: bool,
    ) -> Pending<'a, Result<NodeRegistration, Fault>> {
        Box::pin(ready(Ok(NodeRegistration::Registered)))
    }

    /// Ends the registration of the node that this process has registered.
    fn unregister_node(&self) -> Pending<'_, Result<(), Fault>> {
        Box::pin(ready(Ok(())))
    }

    /// Waits until registered nodes have come or gone. For a system without such a list, it never returns.
    fn node_list_changes(&self) -> Pending<'_, NodeListChange> {
        Box::pin(pending())
    }

    /// Brings the times that the foreign system shows of jobs up to date. A command calls it after it has changed jobs;
    /// a registered node does it by itself.
    fn publish_times(&self) -> Pending<'_, Result<(), Fault>> {
        Box::pin(ready(Ok(())))
    }
}

/// A foreign system whose clients can share a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignSystem {
    /// Cronken, on Redis.
    Cronken,
    /// castle-cron, on ZooKeeper.
    CastleCron,
}

/// The result of registering a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeRegistration {
    /// The node is shown under its name.
    Registered,
    /// Another running node has the name.
    NameTaken {
        /// What is known about that node.
        holder: String,
    },
}

/// A change of the list of registered nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeListChange {
    /// Nodes that have joined.
    pub joined: Vec<String>,
    /// Nodes that have left.
    pub left: Vec<String>,
    /// All nodes that are registered now, in order.
    pub all: Vec<String>,
}

/// An event that a foreign system has sent to all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedEvent {
    /// Its text.
    pub text: String,
    /// Where it stands among all events; `None` if that is unknown, because this process had just subscribed.
    pub place: Option<EventPlace>,
}

/// Where an event stands among all events. It is the same for every process that has received the event, and no other
/// event with the same text has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPlace {
    /// The last mark before the event. Marks are unique.
    pub mark: String,
    /// How many events with the same text there were between that mark and this one.
    pub index: u64,
    /// The store's time of the next mark. No process acts on the event before that time.
    pub marked_at: Instant,
}

/// A job definition in the form of the foreign system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedDefinition {
    /// The job's name in the foreign system. It may not be a valid job id.
    pub name: String,
    /// The text of the definition; `None` if it does not exist.
    pub text: Option<String>,
    /// How the text compares with the one that was settled last.
    pub standing: DefinitionStatus,
}

/// How a definition compares with its text when it was last settled, which means that its job agreed with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionStatus {
    /// It was never settled.
    New,
    /// The text has not changed since it was settled by these rules.
    Settled(DefinitionRules),
    /// The foreign system has changed or removed it since.
    Changed,
}

/// The rules by which a definition is read. Two systems may read the same text differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionRules {
    /// Cronhold reads the definition by its own rules.
    Ours,
    /// The rules of the foreign nodes, which run the same jobs.
    Theirs,
}

/// An update of a definition, after which it counts as settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionUpdate {
    /// The job's name.
    pub name: String,
    /// The text that was found. If it has changed meanwhile, the update is not made.
    pub found: Option<String>,
    /// The new text. The same text as was found only settles the definition; `None` removes it.
    pub text: Option<String>,
    /// The rules by which it was read.
    pub reading: DefinitionRules,
}

impl DefinitionStatus {
    /// Whether the text has not changed since it was settled, by whatever rules.
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Settled(_))
    }
}

/// A run of a foreign node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedRun {
    /// The run's id in the foreign system.
    pub id: String,
    /// The job's name in the foreign system. It may not be a valid job id.
    pub job: String,
    /// The host that started the run.
    pub host: String,
    /// When the run started, by the store's time.
    pub started: Instant,
    /// The state of the run.
    pub state: SharedRunState,
    /// How its program ended, if that is known.
    pub exit: Option<ProgramExit>,
    /// How long the run took, if it has ended.
    pub took: Option<Span>,
    /// The last lines of its output.
    pub tail: Vec<String>,
}

/// The state of a run of a foreign node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedRunState {
    /// It has not ended.
    Running,
    /// It has succeeded.
    Success,
    /// It has failed.
    Failure,
    /// Its node stopped sending heartbeats, and its end is unknown.
    Frozen,
}
