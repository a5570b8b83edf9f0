//! Several nodes on one Redis, of which one after the other is killed.

use serde_json::json;

use crate::node_kills::{self, NodeKills, script};
use crate::place::{Daemon, Place};
use crate::report::Report;

const JOBS: usize = 500;
/// How late the next due run may be after a kill.
const LATE_MOST_MILLIS: f64 = 1_000.0;

pub(crate) fn measure(report: &mut Report, place: &mut Place, nodes: usize, seconds: u64) {
    let starts = place.starts();
    place.put_jobs(JOBS, &script(&starts), false, |_| json!({"second": "*"}));
    let kills = NodeKills {
        jobs: JOBS,
        nodes,
        seconds,
        late_most: Some(LATE_MOST_MILLIS),
        starts,
        start: &|name| Daemon::start(&place.server.url(), place.dir.join(name), name, &[]),
        disturb: &mut |_, _, _| {},
    };
    node_kills::measure(report, kills);
}
