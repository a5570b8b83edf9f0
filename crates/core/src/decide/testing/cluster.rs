//! What scripts say about several nodes. The bench decides as one of them at a time.
//!
//! - `node 2.1`: from now on node 2 decides, in its first life. It has the labels that `there` gave it.
//! - `there 1 2:gpu,ssd 3:draining`: these nodes are there, and share the store; each is heard of now.
//! - `shared`: the store is shared. `drained on`: this node starts nothing any more; `drained off`.
//! - `beat 2`: node 2 is heard of. `expired LOCK`: a lock was not renewed in time.
//! - `reap #1 00:05`: its node was heard of last then. `lock-lost #1`. `drain 2 on`. `hold LOCK KEY`, `let-go LOCK KEY`.
//! - `event DIGEST KEY COMMAND`: someone has heard of it. `foreign-run JOB HOST 00:05`: a foreign node ran it then.

use std::collections::BTreeSet;
use std::sync::Arc;

use cronhold_schedule::Span;

use super::script::{instant, job_id};
use super::{DecisionBench, START};
use crate::command::{Command, ProgramReport};
use crate::ids::{NodeId, RunId};
use crate::record::{Actor, ForeignRun, LockName, NodeRecord, Record, RecordKey, RecordVersion, StoredRecord};

/// How long a node counts as there without being heard of.
const GONE_AFTER: Span = Span::from_secs(6);

impl DecisionBench {
    /// Something that is so from now on.
    pub(super) fn around(&mut self, verb: &str, rest: &str) {
        match verb {
            "node" => self.become_node(rest),
            "there" => {
                let nodes: Vec<Arc<NodeRecord>> =
                    rest.split_whitespace().map(|text| Arc::new(self.described(text))).collect();
                nodes.iter().for_each(|node| self.store_node(node));
                self.world.nodes = nodes.into();
                self.world.is_shared = true;
                self.know_myself();
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
            "foreign-run" => self.ran_elsewhere(rest),
            "expired" => {
                self.records.remove(&RecordKey::Lock(lock(rest)));
                self.has_lost_locks = true;
            }
            _ => panic!("`{verb}` cannot be so"),
        }
    }

    /// Something that is asked and has to do with several nodes.
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
                let (holder, command) = more.split_once(' ').expect("who has heard it, and what");
                let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
                let (actor, command) = self.command(verb, rest);
                let once = LockName::of_event(first).expect("a short digest");
                let holder = RunId::from_key(START, holder);
                (actor, Command::Event { once, holder, command: Box::new(command) })
            }
            "let-go" => (Actor::JobFiles, Command::ReleaseLock { lock: lock(first), holder: holder() }),
            _ => panic!("`{verb}` is nothing that happens"),
        }
    }

    fn become_node(&mut self, text: &str) {
        let (node, life) = text.split_once('.').expect("a node and its life");
        self.me.node = node_id(node);
        self.me.incarnation = life.parse().expect("a number");
        self.know_myself();
    }

    fn know_myself(&mut self) {
        let me = self.world.nodes.iter().find(|node| node.id == self.me.node).map(Arc::clone);
        if let Some(me) = me {
            self.world.labels = Arc::new(me.labels.clone());
            self.world.is_draining = me.draining;
        }
    }

    fn described(&self, text: &str) -> NodeRecord {
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
            labels: words,
            skew: None,
        }
    }

    /// A foreign node has run a job.
    fn ran_elsewhere(&mut self, text: &str) {
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
