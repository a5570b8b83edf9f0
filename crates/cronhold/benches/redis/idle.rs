//! Several idle nodes of ours with many jobs: the commands that they send to the server.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use cronhold_daemon::bench::samples::{number, seconds};
use cronhold_schedule::Span;

use crate::place::{Node, Place, Side, rest};
use crate::report::{Report, Target};
use crate::size::put_rare;

/// Target for the commands per second of all nodes together.
const MOST: f64 = 50.0;
/// Time until the nodes have finished their start.
const SETTLE: Span = Span::from_secs(10);
const FOR: Span = Span::from_secs(60);

pub(crate) fn measure(report: &mut Report, place: &mut Place, nodes: usize, jobs: usize) {
    put_rare(place, jobs);
    let running: Vec<Node> = (0..nodes).map(|number| place.start(Side::Cronhold, &format!("node-{number}"))).collect();
    rest(SETTLE);
    let file = place.dir.join("commands");
    let mut command = Command::new("redis-cli");
    command.args(["-p", &place.server.port().to_string(), "MONITOR"]).stdin(Stdio::null());
    let mut monitor = command.stdout(File::create(&file).expect("a file")).spawn().expect("it starts");
    rest(FOR);
    monitor.kill().expect("it runs");
    monitor.wait().expect("it ends");
    drop(running);
    let text = fs::read_to_string(file).expect("a file");
    // MONITOR also lists the commands in scripts, and marks them.
    let (scripts, sent): (Vec<&str>, Vec<&str>) =
        text.lines().filter(|line| line.contains('[')).partition(|line| line.contains(" lua] "));
    let per_second = |lines: Vec<&str>| number(lines.len() as u64) / seconds(FOR);
    let of = format!("{nodes} idle nodes with {jobs} jobs");
    report.compare(format!("{of}: commands sent"), per_second(sent), "/s", Target::AtMost(MOST));
    report.note(format!("{of}: commands in scripts"), per_second(scripts), "/s");
}
