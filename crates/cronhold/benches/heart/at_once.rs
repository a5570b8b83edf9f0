//! Many jobs that are due at one instant: how long after it each is decided, claimed and recorded.

use std::fs;

use cronhold_schedule::Span;

use crate::report::{Report, Target};
use crate::rig::{Rig, block_on, scratch};
use crate::throughput::number;

/// Instants that are looked at, after a first one that warms up.
const ROUNDS: usize = 5;
const LOOK_EVERY: Span = Span::from_millis(100);

/// `jobs` jobs, due every `every` seconds.
pub(crate) fn measure(report: &mut Report, jobs: usize, every: u32, target: Option<Target>) {
    let dir = scratch("at-once");
    let mut late: Vec<u64> = block_on(async {
        let rig = Rig::start(&dir);
        let yaml = format!("program: {{noop: true}}\noverlap: allow\nschedule: {{every: {every}s}}\n");
        rig.put_jobs(jobs, |_| yaml.clone()).await;
        // The first instant may have come while the jobs were put.
        wait_for(&rig, 2 * jobs).await;
        rig.notes.take();
        wait_for(&rig, ROUNDS * jobs).await;
        let notes = rig.notes.take();
        rig.stop().await;
        notes.into_iter().map(|(nominal, at)| at.since(nominal).micros()).collect()
    });
    late.sort_unstable();
    let part = |percent: usize| number(late[(late.len() - 1) * percent / 100]) / 1_000.0;
    let due = if jobs == 1 { "1 job due".to_owned() } else { format!("{jobs} jobs due at one instant") };
    report.note(format!("{due}, recorded: median"), part(50), "ms");
    let what = format!("{due}, recorded: p99");
    match target {
        Some(target) => report.compare(what, part(99), "ms", target),
        None => report.note(what, part(99), "ms"),
    }
    report.note(format!("{due}, recorded: last"), part(100), "ms");
    let _ = fs::remove_dir_all(dir);
}

async fn wait_for(rig: &Rig, runs: usize) {
    while rig.notes.count() < runs {
        rig.clock.sleep(LOOK_EVERY).await;
    }
}
