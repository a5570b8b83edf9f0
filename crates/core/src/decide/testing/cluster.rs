//! Script lines about several nodes. The bench decides as one node at a time.
//!
//! - `node 2.1`: from now on node 2 decides, in its first incarnation. It has the labels that `there` gave it.
//! - `there 1 2:gpu,ssd 3:draining,zones=2026b`: these nodes are alive and share the store; each sends a heartbeat now.
//! - `shared`: the store is shared. `drained on`: this node starts nothing; `drained off` ends that.
//! - `beat 2`: node 2 sends a heartbeat. `expired LOCK`: a lock was not renewed in time.
//! - `reap #1 00:05`: its node sent its last heartbeat at 00:05. `lock-lost #1`. `drain 2 on`. `hold LOCK KEY`,
//!   `let-go LOCK KEY`.
//! - `event DIGEST KEY COMMAND`: the node with the token KEY has received an event. `foreign-run JOB HOST 00:05`: a
//!   foreign node ran the job at 00:05.

use std::collections::BTreeSet;
use std::sync::Arc;

use cronhold_schedule::{Span, ZoneRegistry};

use super::script::{instant, job_id};
use super::{DecisionBench, START};
use crate::command::{Command, ProgramReport};
use crate::ids::{NodeId, RunId};
use crate::record::{Actor, ForeignRun, LockName, NodeRecord, Record, RecordKey, RecordVersion, StoredRecord};

/// How long a node counts as alive without a heartbeat.
const GONE_AFTER: Span = Span::from_secs(6);

impl DecisionBench {
    /// Changes the nodes, the locks or the decision context; no command is decided.
    pub(super) fn change_cluster(&mut self, verb: &str, rest: &str) {
        match verb {
            "node" => self.become_node(rest),
            "there" => {
                let nodes: Vec<Arc<NodeRecord>> =
                    rest.split_whitespace().map(|text| Arc::new(self.parse_node(text))).collect();
                nodes.iter().for_each(|node| self.store_node(node));
                self.world.nodes = nodes.into();
                self.world.is_shared = true;
                self.apply_own_record();
            }
            "shared" => self.world.is_shared = true,
            "drained" => self.world.is_draining = rest == "on",
            "beat" => {
                let Some(Record::Node(node)) =
                    self.records.get(&RecordKey::Node(node_id(rest))).map(|node| &node.record)
                else {
                    panic!("there is no node {rest}")
                };
                let node = NodeRecord { beat: self.now, gone: self.now.plus(GONE_AFTER), ..(**node).clone() };
                self.store_node(&Arc::new(node));
            }
            "foreign-run" => self.store_foreign_run(rest),
            "expired" => {
                self.records.remove(&RecordKey::Lock(lock(rest)));
                self.has_lost_locks = true;
            }
            _ => panic!("`{verb}` is not a change of the cluster"),
        }
    }

    /// A command that involves several nodes.
    pub(super) fn cluster_command(&self, verb: &str, rest: &str) -> (Actor, Command) {
        let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let anna = Actor::Operator("anna".to_owned());
        let holder = || RunId::from_key(START, more);
        match verb {
            "reap" => (Actor::Watchdog, Command::Reap { run: self.run_id(first), beat: instant(more) }),
            "lock-lost" => {
                (Actor::Watchdog, Command::Report { run: self.run_id(first), report: ProgramReport::LockLost })
            }
            "drain" => (anna, Command::Drain { node: node_id(first), on: more == "on" }),
            "hold" => {
                let ttl = Span::from_secs(10);
                (Actor::JobFiles, Command::AcquireLock { lock: lock(first), holder: holder(), ttl })
            }
            "event" => {
                let (holder, command) = more.split_once(' ').expect("a token and a command");
                let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
                let (actor, command) = self.command(verb, rest);
                let once = LockName::of_event(first).expect("a short digest");
                let holder = RunId::from_key(START, holder);
                (actor, Command::Event { once, holder, command: Box::new(command) })
            }
            "let-go" => (Actor::JobFiles, Command::ReleaseLock { lock: lock(first), holder: holder() }),
            "deliver" | "delivered" | "undelivered" => self.action_command(verb, rest),
            _ => panic!("`{verb}` is not a command"),
        }
    }

    /// Gives the node zone data of a release. In 2026b, Berlin has the rules of Brazzaville: it has the same time in
    /// winter, and no summer time.
    pub(super) fn set_zones(&mut self, release: &str) {
        let zones = ZoneRegistry::bundled();
        self.world.zones_version = release.into();
        self.world.zones = Arc::new(match release {
            "2026b" => zones.with_rules_of("Europe/Berlin", "Africa/Brazzaville"),
            _ => zones,
        });
    }

    fn become_node(&mut self, text: &str) {
        let (node, incarnation) = text.split_once('.').expect("a node and its incarnation");
        self.me.node = node_id(node);
        self.me.incarnation = incarnation.parse().expect("a number");
        self.apply_own_record();
    }

    fn apply_own_record(&mut self) {
        let me = self.world.nodes.iter().find(|node| node.id == self.me.node).map(Arc::clone);
        if let Some(me) = me {
            self.world.labels = Arc::new(me.labels.clone());
            self.world.is_draining = me.draining;
            self.world.keeper_problem = me.keeper_problem.as_deref().map(Arc::from);
        }
    }

    fn parse_node(&self, text: &str) -> NodeRecord {
        let (id, more) = text.split_once(':').unwrap_or((text, ""));
        let words: BTreeSet<String> = more.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        NodeRecord {
            id: node_id(id),
            name: format!("node-{id}"),
            incarnation: 1,
            since: START,
            beat: self.now,
            gone: self.now.plus(GONE_AFTER),
            draining: words.contains("draining"),
            zones: words.iter().find_map(|word| word.strip_prefix("zones=")).unwrap_or_default().to_owned(),
            keeper_problem: words.contains("no-keeper").then(|| "it does not reply".to_owned()),
            labels: words,
            skew: None,
        }
    }

    /// Records that a foreign node has run a job.
    fn store_foreign_run(&mut self, text: &str) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [job, host, started] = words[..] else { panic!("`{text}` is not a job, a host and a time") };
        self.world.has_foreign = true;
        self.units += 1;
        let (job, host, started) = (job_id(job), host.to_owned(), instant(started));
        let run = ForeignRun { job, system: "Elsewhere", run: started.to_string(), host, started, is_running: false };
        let key = RecordKey::Foreign(run.job.clone());
        let stored =
            StoredRecord { version: RecordVersion::new(1, self.units), record: Record::Foreign(Arc::new(run)) };
        self.records.insert(key, stored);
    }

    fn store_node(&mut self, node: &Arc<NodeRecord>) {
        self.units += 1;
        let stored =
            StoredRecord { version: RecordVersion::new(1, self.units), record: Record::Node(Arc::clone(node)) };
        self.records.insert(RecordKey::Node(node.id), stored);
    }
}

fn node_id(text: &str) -> NodeId {
    NodeId::from_bits(text.parse().expect("a number"))
}

fn lock(text: &str) -> LockName {
    LockName::parse(text).expect("a lock's name")
}
