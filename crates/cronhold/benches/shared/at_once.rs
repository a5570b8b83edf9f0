//! Many jobs that are due at one instant: the time until each is claimed and recorded. The report shows the median of
//! several instants.

use cronhold_daemon::bench::due_at_once::measure_bursts;

use crate::report::{Report, Target};
use crate::rig::{Stores, on_node};

/// Measured instants, after a first one for warm-up.
const ROUNDS: usize = 11;

/// `jobs` jobs, due every `every` seconds.
pub(crate) fn measure(report: &mut Report, stores: Stores<'_>, jobs: usize, every: usize, target: Option<Target>) {
    let bursts = on_node("at-once", stores, async |node| measure_bursts(node, jobs, every, ROUNDS).await);
    let due = if jobs == 1 { "1 job due".to_owned() } else { format!("{jobs} jobs due at one instant") };
    report.note(format!("{due}, recorded: median"), bursts.percentile(50), "ms");
    let what = format!("{due}, recorded: p99");
    match target {
        Some(target) => report.compare(what, bursts.percentile(99), "ms", target),
        None => report.note(what, bursts.percentile(99), "ms"),
    }
    report.note(format!("{due}, recorded: last"), bursts.percentile(100), "ms");
    report.note(format!("{due}, recorded: worst of all {ROUNDS} instants"), bursts.worst(), "ms");
}
