//! Several idle daemons on a store with many jobs: the packets that they send to the server.

use cronhold_daemon::bench::samples::{number, seconds};
use cronhold_schedule::Span;
use cronhold_store_zookeeper::testing::ZooKeeperServer;

use crate::account::busy_percent;
use crate::daemons::{Daemon, rest};
use crate::report::Report;
use crate::rig::scratch;
use crate::size::{JOBS, ROOT};

const NODES: usize = 10;
/// Time until the daemons have finished their start.
const SETTLE: Span = Span::from_secs(20);
const FOR: Span = Span::from_secs(30);

/// Starts daemons on the store that `size.rs` has filled.
pub(crate) fn measure(report: &mut Report, server: &ZooKeeperServer) {
    let dir = scratch("idle");
    let start = |number: usize| {
        let name = format!("node-{number}");
        Daemon::start(&server.url(ROOT), dir.join(&name), &name, &[])
    };
    let running: Vec<Daemon> = (0..NODES).map(start).collect();
    rest(SETTLE);
    let read = || ["zk_packets_received", "zk_packets_sent"].map(|name| server.count(name));
    let before = read();
    let busy = busy_percent(running[0].pid(), FOR);
    let after = read();
    drop(running);
    for (place, what) in ["received", "sent"].into_iter().enumerate() {
        let rate = number(after[place] - before[place]) / seconds(FOR);
        report.note(format!("{NODES} idle nodes with {JOBS} jobs: packets {what} by the server"), rate, "/s");
    }
    report.note(format!("{NODES} idle nodes with {JOBS} jobs: idle CPU of one"), busy, "%");
    let _ = std::fs::remove_dir_all(dir);
}
