//! Three daemons on an ensemble of three. In each round a daemon is killed with its keeper and its programs. Meanwhile the
//! ensemble loses its leader, another member or its majority, or another daemon is suspended for longer than its session
//! lasts.

use std::cell::RefCell;
use std::fs;

use cronhold_store_zookeeper::testing::ZooKeeperEnsemble;
use rustix::process::{Pid, Signal, kill_process};

use crate::daemons::Daemon;
use crate::node_kills::{self, KillPhase, NodeKills, script};
use crate::report::Report;
use crate::rig::scratch;

const JOBS: usize = 100;
const NODES: usize = 3;
/// Kinds of rounds.
const KINDS: usize = 4;

pub(crate) fn measure(report: &mut Report, seconds: u64) {
    let dir = scratch("kills");
    let (starts, jobs) = (dir.join("starts"), dir.join("jobs"));
    fs::create_dir_all(&jobs).expect("a directory");
    let yaml = format!(
        "program: [/bin/bash, -c, '{}']\nschedule: '* * * * * * *'\nretain: {{success: 10000, skipped: 10000}}\n",
        script(&starts)
    );
    (0..JOBS).for_each(|number| fs::write(jobs.join(format!("job-{number}.yaml")), &yaml).expect("a file"));
    let ensemble = RefCell::new(ZooKeeperEnsemble::start());
    // Shorter than a node is away, so that the session of a suspended one ends.
    let store = format!("{}?timeout=2s&keep=10000", ensemble.borrow().url("/kills"));
    let jobs = jobs.display().to_string();
    let mut killed: Vec<usize> = Vec::new();
    let mut disturb = |round: usize, phase: KillPhase, nodes: &[Daemon]| {
        let mut ensemble = ensemble.borrow_mut();
        match (round % KINDS, phase) {
            (0, KillPhase::Killed) => killed.push(ensemble.kill_leader()),
            (1, KillPhase::Killed) => killed.push(ensemble.kill_follower()),
            (2, KillPhase::Killed) => {
                killed.push(ensemble.kill_follower());
                killed.push(ensemble.kill_leader());
            }
            (3, KillPhase::Killed) => send(&nodes[0], Signal::STOP),
            (3, KillPhase::Restarting) => send(&nodes[0], Signal::CONT),
            _ => ensemble.start_members(&std::mem::take(&mut killed)),
        }
    };
    let kills = NodeKills {
        jobs: JOBS,
        nodes: NODES,
        seconds,
        late_most: None,
        starts,
        start: &|name| Daemon::start(&store, dir.join(name), name, &["--jobs", &jobs]),
        disturb: &mut disturb,
    };
    node_kills::measure(report, kills);
    let _ = fs::remove_dir_all(dir);
}

/// Sends a signal to a daemon. Its keeper keeps running.
fn send(node: &Daemon, signal: Signal) {
    let pid = i32::try_from(node.pid()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process has a pid"), signal).expect("it runs");
}
