//! The speed of the disk alone: small durable writes. All other numbers have to be compared with this one.

use cronhold_daemon::bench::machine::time_durable_writes;
use cronhold_daemon::bench::samples::LoopLimit;
use cronhold_schedule::Span;

use crate::report::Report;
use crate::rig::{block_on, scratch};

const FOR: LoopLimit = LoopLimit::Time(Span::from_secs(3));

pub(crate) fn measure(report: &mut Report) {
    let dir = scratch("fsync");
    let writes = block_on(time_durable_writes(&dir.join("bytes"), FOR)).expect("durable");
    report.note("bare loop: write 512 bytes and fdatasync", writes.per_second(), "/s");
    let _ = std::fs::remove_dir_all(dir);
}
