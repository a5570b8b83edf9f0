//! No-op runs per second. Each run is durable before it starts and again when it has ended.

use std::fs;

use cronhold_daemon::bench::node::BenchNode;
use cronhold_daemon::bench::runs::{put_frequent_jobs, while_requesting};
use cronhold_daemon::bench::samples::{number, seconds};
use cronhold_schedule::Span;
use rustix::time::{ClockId, clock_gettime};

use crate::report::{Report, Target};
use crate::rig::{Stores, on_node};

const WARM_UP: Span = Span::from_secs(2);
const FOR: Span = Span::from_secs(10);

/// Runs on request, as fast as the node accepts them.
pub(crate) fn asked(report: &mut Report, stores: Stores<'_>, least: f64) {
    on_node("asked", stores, async |node| while_requesting(node, watch(report, node, "on request", least)).await);
}

/// Runs by schedules that are all due every second. Fewer schedules than the node can start give their own number.
pub(crate) fn scheduled(report: &mut Report, stores: Stores<'_>, schedules: usize, least: f64) {
    on_node("scheduled", stores, async |node| {
        put_frequent_jobs(node, schedules).await?;
        watch(report, node, &format!("by {schedules} schedules"), least).await;
        Ok(())
    });
}

async fn watch(report: &mut Report, node: &BenchNode, how: &str, least: f64) {
    node.clock.sleep(WARM_UP).await;
    let before = (node.node.counters(), node.store.health().await, written(), node.clock.uptime());
    let busy_before = busy();
    node.clock.sleep(FOR).await;
    let after = (node.node.counters(), node.store.health().await, written(), node.clock.uptime());
    let busy_after = busy();
    let runs = number(after.0.finished - before.0.finished);
    let per_run = |count: u64| number(count) / runs.max(1.0);
    report.compare(format!("no-op runs {how}"), runs / seconds(after.3.minus(before.3)), "/s", Target::AtLeast(least));
    report.note(format!("  turns, {how}"), number(after.0.turns - before.0.turns) / seconds(FOR), "/s");
    report.note(format!("  commits, {how}"), number(after.1.commits - before.1.commits) / seconds(FOR), "/s");
    report.note(format!("  units per run, {how}"), per_run(after.1.units - before.1.units), "");
    report.note(format!("  bytes written per run, {how}"), per_run(after.2 - before.2), "B");
    report.note(format!("  CPU of the node per run, {how}"), per_run(busy_after.0 - busy_before.0), "us");
    report.note(format!("  CPU of all threads per run, {how}"), per_run(busy_after.1 - busy_before.1), "us");
}

/// The CPU time of this thread, which is the node's, and of the whole process, in microseconds.
fn busy() -> (u64, u64) {
    let micros = |id| {
        let time = clock_gettime(id);
        time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1_000
    };
    (micros(ClockId::ThreadCPUTime), micros(ClockId::ProcessCPUTime))
}

/// Bytes that this process has written to disk.
fn written() -> u64 {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let bytes = text.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok());
    bytes.unwrap_or(0)
}
