//! What decisions depend on besides records: zone data, calendars, the node's labels and the nodes that are alive.

use std::collections::BTreeSet;
use std::sync::Arc;

use cronhold_schedule::calendar::CalendarSet;
use cronhold_schedule::{CompileContext, CompileError, Schedule, ScheduleSpec, Span, Zone, ZoneRegistry};

use crate::ids::{JobId, NodeId};
use crate::job::{JobDefaults, NodeSelector};
use crate::policy::lease::LEASE_DEFAULT;
use crate::record::NodeRecord;
use crate::task::RunChannels;
use crate::template::Bindings;

/// What decisions depend on besides records. It is the same for all commands of a batch.
#[derive(Debug, Clone)]
pub struct DecisionContext {
    /// The time zones that schedules may name.
    pub zones: Arc<ZoneRegistry>,
    /// The release of the zone data, such as `2026e`. Releases compare as text.
    pub zones_version: Arc<str>,
    /// The zone of new jobs whose schedules name none.
    pub zone: Zone,
    /// The calendars that schedules may name.
    pub calendars: Arc<CalendarSet>,
    /// Actions of all jobs, which this node adds to what it decides.
    pub defaults: Arc<JobDefaults>,
    /// Labels of this node.
    pub labels: Arc<BTreeSet<String>>,
    /// Whether other nodes may use the same store. If so, locks have a time to live and must be renewed.
    pub is_shared: bool,
    /// The lease of runs without a lock on such a store, for jobs that set none.
    pub lease: Span,
    /// Whether the store keeps tasks. The node sets it.
    pub has_tasks: bool,
    /// Which channels of runs have subscribers.
    pub run_channels: Arc<RunChannels>,
    /// Whether commands are decided on a node. Without one, a command may create runs but not start them.
    pub is_node: bool,
    /// Whether this node is draining and starts nothing.
    pub is_draining: bool,
    /// Why the keeper of this node cannot start programs, so that the node starts nothing; `None` if it can.
    pub keeper_problem: Option<Arc<str>>,
    /// Whether foreign nodes, which belong to another system, run the jobs of this store too.
    pub has_foreign: bool,
    /// The nodes that are alive, including this one, sorted by id. On a store with one node it contains only this node.
    pub nodes: Arc<[Arc<NodeRecord>]>,
}

impl DecisionContext {
    /// A context without calendars, for a node without labels on a store of its own.
    pub fn new(zones: Arc<ZoneRegistry>, zones_version: Arc<str>, zone: Zone) -> Self {
        Self {
            zones,
            zones_version,
            zone,
            calendars: Arc::default(),
            defaults: Arc::default(),
            labels: Arc::default(),
            is_shared: false,
            lease: LEASE_DEFAULT,
            has_tasks: false,
            run_channels: Arc::default(),
            is_node: true,
            is_draining: false,
            keeper_problem: None,
            has_foreign: false,
            nodes: Arc::default(),
        }
    }

    /// Compiles a schedule. `zone` is the default zone that was in force when the job was put.
    pub fn compile(&self, job: &JobId, spec: &ScheduleSpec, zone: &str) -> Result<Schedule, CompileError> {
        let default = self.zones.get(zone).unwrap_or_else(|_| self.zone.clone());
        let around =
            CompileContext { zones: &self.zones, zone: &default, calendars: &self.calendars, job: job.as_str() };
        Schedule::compile(spec, around)
    }

    /// Bindings with this context's zones and calendars, without names.
    pub fn bindings(&self) -> Bindings {
        Bindings::new(Arc::clone(&self.zones), Arc::clone(&self.calendars))
    }

    /// Whether this node may run a job.
    pub fn is_eligible(&self, nodes: &NodeSelector) -> bool {
        self.keeper_problem.is_none() && self.would_be_eligible(nodes)
    }

    /// Whether this node may run a job as soon as its keeper can start programs.
    fn would_be_eligible(&self, nodes: &NodeSelector) -> bool {
        self.is_node && !self.is_draining && nodes.allow(&self.labels)
    }

    /// Whether this node, or another live one, may run a job as soon as its keeper can start programs.
    pub fn waits_for_keeper(&self, me: NodeId, nodes: &NodeSelector) -> bool {
        let is_here = self.keeper_problem.is_some() && self.would_be_eligible(nodes);
        let waits = |node: &Arc<NodeRecord>| {
            node.id != me && node.keeper_problem.is_some() && !node.draining && nodes.allow(&node.labels)
        };
        is_here || self.nodes.iter().any(waits)
    }

    /// All live nodes that may run a job, sorted by id. For `me`, this context is used rather than its node record.
    pub fn eligible(&self, me: NodeId, nodes: &NodeSelector) -> BTreeSet<NodeId> {
        let may = |node: &&Arc<NodeRecord>| node.id != me && node.may_start() && nodes.allow(&node.labels);
        let others = self.nodes.iter().filter(may).map(|node| node.id);
        others.chain(self.is_eligible(nodes).then_some(me)).collect()
    }

    /// Whether another live node that may run a job has zone data of a release or of a later one.
    pub fn has_zone_data(&self, me: NodeId, nodes: &NodeSelector, release: &str) -> bool {
        let may = |node: &Arc<NodeRecord>| node.id != me && !node.draining && nodes.allow(&node.labels);
        self.nodes.iter().any(|node| may(node) && *node.zones >= *release)
    }

    /// Whether a node is alive.
    pub fn is_there(&self, me: NodeId, node: NodeId) -> bool {
        node == me || self.nodes.iter().any(|there| there.id == node)
    }
}
