//! Several real nodes on one Redis, under load. Nodes are killed, suspended and restarted, connections are closed or
//! blocked, and Redis itself is suspended for a while. In all cases each occurrence has one outcome, no program is
//! started twice, and two programs never run under the same lock.

use rustix::process::Signal;
use serde_json::Value;

use crate::cluster_load::{check_programs, check_runs, put_jobs, seconds, sleep};
use crate::processes::eventually;
use crate::sandbox::{Node, Sandbox};
use crate::wire::{Block, Wire};

/// The seed of the random actions. The environment variable overrides it.
const SEED: u64 = 0x5eed_0007_c1a5_7e12;
const OTHER_SEED: &str = "CRONHOLD_TEST_SEED";
/// Number of random actions.
const ACTS: usize = 14;
/// The action that suspends Redis.
const STANDSTILL: usize = 6;
/// More runs than the test creates.
const RUNS_MAX: &str = "100000";
/// States of unfinished runs.
const OPEN: &str = "scheduled,waiting,starting,running,stopping";

#[test]
fn every_occurrence_has_one_outcome() {
    let sandbox = Sandbox::new("cluster");
    put_jobs(&sandbox);
    let names = ["a", "b", "c"];
    let wires = names.map(|_| Wire::to(sandbox.server.port()));
    let start = |(name, wire): (&&str, &Wire)| {
        sandbox.start_at(&format!("redis://127.0.0.1:{}", wire.port()), name, &["--jobs", "jobs"])
    };
    let mut nodes: Vec<Node> = names.iter().zip(&wires).map(start).collect();
    nodes.iter().for_each(Node::wait_until_ready);
    eventually("something runs", || !finished(&sandbox, "success").is_empty());

    let mut chance = Chance(seed());
    for act in 0..ACTS {
        let one = chance.below(names.len());
        match chance.below(7) {
            _ if act == STANDSTILL => {
                sandbox.server.freeze();
                sleep(3_000);
                sandbox.server.thaw();
            }
            0 | 1 => {
                nodes[one].kill();
                sleep(chance.between(300, 1_500));
                nodes[one].start_again();
            }
            2 => {
                nodes[one].send(Signal::STOP);
                sleep(chance.between(500, 4_000));
                nodes[one].send(Signal::CONT);
            }
            3 | 4 => {
                // Sometimes longer than a lock lasts.
                wires[one].set(Some(if chance.below(2) == 0 { Block::Requests } else { Block::Replies }));
                sleep(chance.between(500, 7_000));
                wires[one].set(None);
            }
            5 => drop(sandbox.server.cli(&["CLIENT", "KILL", "TYPE", "normal"])),
            _ => drop(sandbox.server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"])),
        }
        sleep(chance.between(500, 1_200));
    }

    let until = store_time(&sandbox);
    eventually("all runs that were due are finished", || {
        let open = sandbox.json(&["runs", "--state", OPEN, "-n", RUNS_MAX]);
        open.as_array().expect("runs").iter().all(|run| seconds(run) > until)
    });
    check_runs(&sandbox, until);
    check_programs(&sandbox);
    for node in &mut nodes {
        assert_eq!(node.ended(), None, "{}", node.log_text());
    }
}

/// The example of the README: two nodes, one of which is killed.
#[test]
fn surviving_node_continues_after_other_is_killed() {
    let sandbox = Sandbox::new("two-nodes");
    let (one, mut other) = (sandbox.up("one", &[]), sandbox.up("other", &[]));
    sandbox.done(&["add", "hello", "* * * * * * *", "--", "echo", "hi"]);
    sandbox.done(&["add", "bye", "* * * * * * *", "--", "echo", "bye"]);
    sandbox.at_store(&["nodes"]).exits(0).prints("one").prints("other");
    let by = |node: &str| {
        let runs = sandbox.json(&["runs", "--state", "success", "-n", RUNS_MAX]);
        runs.as_array().expect("runs").iter().filter(|run| run["node"] == node).count()
    };
    eventually("both run something", || by("one") > 0 && by("other") > 0);
    other.kill();
    let before = by("one");
    eventually("the other node continues", || by("one") > before + 5);
    sandbox.at_store(&["holes"]).exits(0);
    one.stop();
}

fn finished(sandbox: &Sandbox, state: &str) -> Vec<Value> {
    sandbox.json(&["runs", "--state", state]).as_array().expect("runs").clone()
}

fn store_time(sandbox: &Sandbox) -> i64 {
    let answer = sandbox.server.cli(&["TIME"]);
    answer.lines().next().and_then(|line| line.parse().ok()).expect("seconds")
}

#[expect(clippy::disallowed_methods, reason = "a test has no arguments")]
fn seed() -> u64 {
    let other = std::env::var(OTHER_SEED).ok().map(|text| text.parse().expect("a number that is not 0"));
    other.unwrap_or(SEED)
}

/// A deterministic random number generator (xorshift).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("it is small")
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least)
    }
}
