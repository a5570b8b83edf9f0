//! The part of the world that decisions may look at without reading a record: zone data, calendars, and what the node
//! can do.

use std::collections::BTreeSet;
use std::sync::Arc;

use cronhold_schedule::calendar::Calendars;
use cronhold_schedule::{CompileError, Schedule, Spec, Surroundings, Zone, Zones};

use crate::ids::{JobId, NodeId};
use crate::job::Nodes;
use crate::record::Node;
use crate::template::Bindings;

/// What decisions may look at beside records. The same for all commands of a turn.
#[derive(Debug, Clone)]
pub struct World {
    /// Zones that can be named.
    pub zones: Arc<Zones>,
    /// Which data they come from, such as `2026e`; later data has a later text.
    pub zones_version: Arc<str>,
    /// The zone of schedules in new jobs that name none.
    pub zone: Zone,
    /// Calendars that can be named.
    pub calendars: Arc<Calendars>,
    /// Labels of this node.
    pub labels: Arc<BTreeSet<String>>,
    /// Whether other nodes may use the same store. Then what is held has to be renewed.
    pub is_shared: bool,
    /// Whether commands are decided on a node. Without one, a command may create runs but not start them.
    pub is_node: bool,
    /// Whether this node is to start nothing any more.
    pub is_draining: bool,
    /// Whether nodes of another kind run the same jobs beside ours.
    pub has_foreign: bool,
    /// Nodes that are there, this one among them, by their ids. Alone on a store a node knows itself only.
    pub nodes: Arc<[Arc<Node>]>,
}

impl World {
    /// A world without calendars, for a node that is alone and has no labels.
    pub fn new(zones: Arc<Zones>, zones_version: Arc<str>, zone: Zone) -> Self {
        Self {
            zones,
            zones_version,
            zone,
            calendars: Arc::default(),
            labels: Arc::default(),
            is_shared: false,
            is_node: true,
            is_draining: false,
            has_foreign: false,
            nodes: Arc::default(),
        }
    }

    /// A schedule that can be asked. The default zone is the one that was in force when the job was put.
    pub fn compile(&self, job: &JobId, spec: &Spec, zone: &str) -> Result<Schedule, CompileError> {
        let default = self.zones.get(zone).unwrap_or_else(|_| self.zone.clone());
        let around = Surroundings { zones: &self.zones, zone: &default, calendars: &self.calendars, job: job.as_str() };
        Schedule::compile(spec, around)
    }

    /// What templates can ask.
    pub fn bindings(&self) -> Bindings {
        Bindings::new(Arc::clone(&self.zones), Arc::clone(&self.calendars))
    }

    /// Whether this node may run a job.
    pub fn is_eligible(&self, nodes: &Nodes) -> bool {
        self.is_node && !self.is_draining && nodes.allow(&self.labels)
    }

    /// All nodes that are there and may run a job, by their ids. Whoever asks is there, and knows itself best.
    pub fn eligible(&self, me: NodeId, nodes: &Nodes) -> BTreeSet<NodeId> {
        let may = |node: &&Arc<Node>| node.id != me && !node.draining && nodes.allow(&node.labels);
        let others = self.nodes.iter().filter(may).map(|node| node.id);
        others.chain(self.is_eligible(nodes).then_some(me)).collect()
    }

    /// Whether a node is there.
    pub fn is_there(&self, me: NodeId, node: NodeId) -> bool {
        node == me || self.nodes.iter().any(|there| there.id == node)
    }
}
