//! No-op runs per second. Each run is durable before it starts and again when it has ended.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_schedule::Span;
use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinSet;

use crate::report::{Report, Target};
use crate::rig::{Rig, Stores, block_on, job_id, scratch, seconds};

const JOBS: usize = 1_000;
/// Concurrent requests.
const CLIENTS: usize = 4_096;
const WARM_UP: Span = Span::from_secs(2);
const FOR: Span = Span::from_secs(10);

/// Runs on request, as fast as the node accepts them.
pub(crate) fn asked(report: &mut Report, stores: Stores<'_>, least: f64) {
    let dir = scratch("asked");
    block_on(async {
        let rig = Rig::start(&dir, stores);
        rig.put_jobs(JOBS, |_| "program: {noop: true}\noverlap: allow\nschedule: triggered\n".to_owned()).await;
        let over = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            let (node, over, job) = (rig.node.clone(), Arc::clone(&over), job_id(client % JOBS));
            clients.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    Rig::run_once(&node, job.clone()).await;
                }
            });
        }
        watch(report, &rig, "on request", least).await;
        over.store(true, Ordering::Relaxed);
        clients.join_all().await;
        rig.stop().await;
    });
    let _ = fs::remove_dir_all(dir);
}

/// Runs by schedules that are due more often than the node can start them.
pub(crate) fn scheduled(report: &mut Report, stores: Stores<'_>, least: f64) {
    let dir = scratch("scheduled");
    block_on(async {
        let rig = Rig::start(&dir, stores);
        let yaml = "program: {noop: true}\noverlap: allow\nschedule: {every: 1s}\nretain: {success: 5}\n";
        rig.put_jobs(20_000, |_| yaml.to_owned()).await;
        watch(report, &rig, "by 20,000 schedules", least).await;
        rig.stop().await;
    });
    let _ = fs::remove_dir_all(dir);
}

async fn watch(report: &mut Report, rig: &Rig, how: &str, least: f64) {
    rig.clock.sleep(WARM_UP).await;
    let before = (rig.node.counters(), rig.commits().await, written(), rig.clock.uptime());
    let busy_before = busy();
    rig.clock.sleep(FOR).await;
    let after = (rig.node.counters(), rig.commits().await, written(), rig.clock.uptime());
    let busy_after = busy();
    let runs = number(after.0.finished - before.0.finished);
    let per_run = |count: u64| number(count) / runs.max(1.0);
    report.compare(format!("no-op runs {how}"), runs / seconds(after.3.minus(before.3)), "/s", Target::AtLeast(least));
    report.note(format!("  turns, {how}"), number(after.0.turns - before.0.turns) / seconds(FOR), "/s");
    report.note(format!("  commits, {how}"), number(after.1.0 - before.1.0) / seconds(FOR), "/s");
    report.note(format!("  units per run, {how}"), per_run(after.1.1 - before.1.1), "");
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

#[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}
