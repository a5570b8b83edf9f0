//! Runs that wait for a run on the same node, and on another one.

use crate::place::{Daemon, Place};
use crate::report::Report;
use crate::waits;

pub(crate) fn measure(report: &mut Report, place: &mut Place) {
    place.put_jobs(0, "", false, |number| number.into());
    let nodes =
        ["one", "two"].map(|name| Daemon::start(&place.server.url(), place.dir.join(name), name, &["--label", name]));
    let [one, two] = [&nodes[0], &nodes[1]].map(|daemon| move |args: &[&str]| daemon.run_json(args));
    waits::wake(
        report,
        "wake-up by `after`, two nodes on Redis",
        &place.dir,
        (&one, &two),
        ["nodes: [one]", "nodes: [two]"],
    );
    drop(nodes);
    place.put_jobs(0, "", false, |number| number.into());
    let node = Daemon::start(&place.server.url(), place.dir.join("alone"), "alone", &[]);
    let call = |args: &[&str]| node.run_json(args);
    waits::wake(report, "wake-up by `after`, one node on Redis", &place.dir, (&call, &call), ["", ""]);
}
