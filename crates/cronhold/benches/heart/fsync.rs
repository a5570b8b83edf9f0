//! The speed of the disk alone: small durable writes. All other numbers have to be compared with this one.

use std::fs::File;
use std::io::Write;

use cronhold_engine::MachineClock;
use cronhold_schedule::Span;

use crate::report::Report;
use crate::rig::{scratch, seconds};

const FOR: Span = Span::from_secs(3);

pub(crate) fn measure(report: &mut Report, clock: &dyn MachineClock) {
    let dir = scratch("fsync");
    let mut file = File::create(dir.join("bytes")).expect("a file");
    let (begin, mut count) = (clock.uptime(), 0);
    while clock.uptime().minus(begin) < FOR {
        file.write_all(&[7; 512]).and_then(|()| file.sync_data()).expect("durable");
        count += 1;
    }
    let took = clock.uptime().minus(begin);
    report.note("bare loop: write 512 bytes and fdatasync", f64::from(count) / seconds(took), "/s");
    let _ = std::fs::remove_dir_all(dir);
}
