//! Many job files: the time until the daemon is ready, and the time until an edited file is applied.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use cronhold_daemon::bench::samples::seconds;
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;

use crate::account::memory;
use crate::report::{Report, Target};
use crate::rig::{block_on, scratch};
use crate::size::Daemon;

/// Jobs in one folder.
const FOLDER: usize = 100;
/// How long the daemon is left alone before its memory is measured.
const SETTLING: Span = Span::from_secs(2);
/// Number of edits. The report shows the slowest one.
const EDITS: usize = 10;

/// The targets: ready at the second start after some seconds, in some megabytes, and an edited file applied within a
/// second.
pub(crate) fn measure(report: &mut Report, clock: &dyn MachineClock, count: usize, (ready, megabytes): (f64, f64)) {
    let dir = scratch("files");
    let jobs = dir.join("jobs");
    for number in 0..count {
        let file = jobs.join(format!("{}.yaml", id(number)));
        if number % FOLDER == 0 {
            fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        }
        fs::write(file, job(number, 90)).expect("written");
    }
    let home = dir.join("home");
    let start = |report: &mut Report, what: &str, target: Option<Target>| {
        let begin = clock.uptime();
        let mut daemon = Daemon::start_with(&home, &["--jobs".as_ref(), jobs.as_os_str()]);
        daemon.wait_for("ready");
        let took = seconds(clock.uptime().minus(begin));
        let what = format!("{count} job files: ready after {what}");
        match target {
            Some(target) => report.compare(what, took, "s", target),
            None => report.note(what, took, "s"),
        }
        daemon
    };
    let daemon = start(report, "the first start", None);
    wait_for_file(clock, &home.join("job-files-cache"));
    drop(daemon);
    let mut daemon = start(report, "another start", Some(Target::AtMost(ready)));
    let slowest = (1..=EDITS).map(|edit| edited(&mut daemon, clock, &jobs, edit)).fold(0.0, f64::max);
    report.compare(format!("{count} job files: slowest edit applied after"), slowest, "s", Target::AtMost(1.0));
    // After an edit, the daemon returns memory that it does not need any more.
    block_on(clock.sleep(SETTLING));
    let used = memory(daemon.pid(), "VmRSS:");
    report.compare(format!("{count} job files: memory"), used, "MB", Target::AtMost(megabytes));
    report.note(format!("{count} job files: peak memory"), memory(daemon.pid(), "VmHWM:"), "MB");
    drop(daemon);
    let _ = fs::remove_dir_all(dir);
}

/// Waits until the daemon has saved what it has learned from the files.
fn wait_for_file(clock: &dyn MachineClock, file: &Path) {
    while !file.exists() {
        block_on(clock.sleep(Span::from_millis(100)));
    }
}

/// Seconds from an edit until the job is stored.
fn edited(daemon: &mut Daemon, clock: &dyn MachineClock, jobs: &Path, edit: usize) -> f64 {
    let number = edit * 17;
    let begin = clock.uptime();
    fs::write(jobs.join(format!("{}.yaml", id(number))), job(number, 90 + edit)).expect("written");
    daemon.wait_for(&format!("({})", id(number)));
    seconds(clock.uptime().minus(begin))
}

fn id(number: usize) -> String {
    format!("folder-{:04}/job-{number:06}", number / FOLDER)
}

/// A job file. All files differ, and use most of what costs time: several keys, a template, a zone, another job.
fn job(number: usize, minutes: usize) -> String {
    let (minute, hour) = (number % 60, number / 60 % 24);
    let zone = ["America/New_York", "Europe/Berlin", "UTC", "Asia/Tokyo"][number % 4];
    let mut text = format!(
        "description: Loads part {number} of the closing prices.\nlabels: [eod, part-{}]\n\
         params: {{region: {{default: us, choices: [us, eu]}}, date: {{}}}}\n\
         schedule: [{{cron: \"{minute} {hour} * * Mon-Fri\", timezone: {zone}, args: {{region: us}}}}]\n\
         program: load --region {{{{ region }}}} --date {{{{ date }}}}\nretry: {{attempts: 3, backoff: 10s}}\n\
         timeout: {minutes}m\nenv: {{PART: \"{number}\"}}\n",
        number % 10
    );
    if number > 0 {
        let _ = writeln!(text, "conditions: [{{after: {{job: {}}}}}, {{max_running: 1}}]", id(number - 1));
    }
    text
}
