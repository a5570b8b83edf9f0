//! Many jobs that are due at one instant: the time until each is claimed and recorded. The report shows the median of
//! several instants.

use std::collections::BTreeMap;
use std::fs;

use cronhold_schedule::{Instant, Span};

use crate::report::{Report, Target};
use crate::rig::{Rig, Stores, block_on, scratch};
use crate::throughput::number;

/// Measured instants, after a first one for warm-up.
const ROUNDS: usize = 11;
const POLL_INTERVAL: Span = Span::from_millis(100);

/// `jobs` jobs, due every `every` seconds.
pub(crate) fn measure(report: &mut Report, stores: Stores<'_>, jobs: usize, every: u32, target: Option<Target>) {
    let dir = scratch("at-once");
    let notes = block_on(async {
        let rig = Rig::start(&dir, stores);
        let yaml = format!("program: {{noop: true}}\noverlap: allow\nschedule: {{every: {every}s}}\n");
        rig.put_jobs(jobs, |_| yaml.clone()).await;
        // The first instant may have passed while the jobs were put.
        wait_for(&rig, 2 * jobs).await;
        rig.notes.take();
        wait_for(&rig, ROUNDS * jobs).await;
        let notes = rig.notes.take();
        rig.stop().await;
        notes
    });
    // Each instant is evaluated by itself. On a machine with other load, the median says more than the worst instant.
    let mut instants: BTreeMap<Instant, Vec<u64>> = BTreeMap::new();
    for (nominal, at) in notes {
        instants.entry(nominal).or_default().push(at.since(nominal).micros());
    }
    instants.retain(|_, late| late.len() == jobs);
    let part = |percent: usize| {
        let of_instant = |late: &mut Vec<u64>| {
            late.sort_unstable();
            late[(late.len() - 1) * percent / 100]
        };
        let mut all: Vec<u64> = instants.clone().values_mut().map(of_instant).collect();
        all.sort_unstable();
        number(all[all.len() / 2]) / 1_000.0
    };
    let worst = instants.values().flatten().max().map_or(0.0, |late| number(*late) / 1_000.0);
    let due = if jobs == 1 { "1 job due".to_owned() } else { format!("{jobs} jobs due at one instant") };
    report.note(format!("{due}, recorded: median"), part(50), "ms");
    let what = format!("{due}, recorded: p99");
    match target {
        Some(target) => report.compare(what, part(99), "ms", target),
        None => report.note(what, part(99), "ms"),
    }
    report.note(format!("{due}, recorded: last"), part(100), "ms");
    report.note(format!("{due}, recorded: worst of all {ROUNDS} instants"), worst, "ms");
    let _ = fs::remove_dir_all(dir);
}

async fn wait_for(rig: &Rig, runs: usize) {
    while rig.notes.count() < runs {
        rig.clock.sleep(POLL_INTERVAL).await;
    }
}
