//! Real programs under the keeper, beside a bare loop that starts the same programs and records nothing.

use std::collections::VecDeque;
use std::fs;
use std::process::{Child, Command, Stdio};

use cronhold_daemon::clock::SystemClock;
use cronhold_engine::Clock;
use cronhold_schedule::Instant;
use tokio::task::JoinSet;

use crate::report::{Report, Target};
use crate::rig::{Rig, Stores, block_on, job_id, scratch, seconds};
use crate::throughput::number;

/// Programs that are in flight at once.
pub(crate) const IN_FLIGHT: usize = 64;
const RUNS: usize = 4_000;
/// Programs of one second, and seconds, that tell how late programs start.
const FEW: usize = 4;
const FEW_ROUNDS: usize = 50;
const AT_ONCE: usize = 1_000;

/// Seconds that a bare loop needs for so many programs.
pub(crate) fn bare(report: &mut Report, clock: &dyn Clock) -> f64 {
    let took = bare_loop(clock, RUNS);
    report.note("bare loop: start and wait, 64 in flight", number(RUNS as u64) / took, "/s");
    took / number(RUNS as u64)
}

fn bare_loop(clock: &dyn Clock, many: usize) -> f64 {
    let begin = clock.uptime();
    let mut running: VecDeque<Child> = VecDeque::new();
    for _ in 0..many {
        if running.len() >= IN_FLIGHT {
            wait(running.pop_front());
        }
        let child = Command::new("/bin/true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        running.push_back(child.expect("a program"));
    }
    running.into_iter().for_each(|child| wait(Some(child)));
    seconds(clock.uptime().minus(begin))
}

fn wait(child: Option<Child>) {
    if let Some(mut child) = child {
        child.wait().expect("it ends");
    }
}

/// Programs in a second, each fully recorded.
pub(crate) fn rate(stores: Stores<'_>) -> f64 {
    let dir = scratch("programs");
    let rate = block_on(async {
        let rig = Rig::with_keeper(&dir, stores);
        rig.put_jobs(IN_FLIGHT, |_| "program: [/bin/true]\noverlap: allow\n".to_owned()).await;
        for job in 0..IN_FLIGHT {
            Rig::run_once(&rig.node, job_id(job)).await;
        }
        let mut asked = JoinSet::new();
        let (begin, mut ended) = (rig.clock.uptime(), 0);
        while ended < RUNS {
            rig.notes.ended.ready().await;
            let over = rig.notes.ended.take(IN_FLIGHT);
            ended += over.len();
            for run in over {
                let (node, job) = (rig.node.clone(), run.job.clone());
                asked.spawn(async move { Rig::run_once(&node, job).await });
            }
            while asked.try_join_next().is_some() {}
        }
        let rate = number(ended as u64) / seconds(rig.clock.uptime().minus(begin));
        rig.stop().await;
        rate
    });
    let _ = fs::remove_dir_all(dir);
    rate
}

/// How late programs start: few at the same second, and many at one instant. The program tells the time by itself, and
/// needs time for that; so the same program is started without us as well, in the same way, and both are told.
pub(crate) fn lateness(report: &mut Report, stores: Stores<'_>) {
    let part = |late: &[f64], percent: usize| late[(late.len() - 1) * percent / 100];
    let alone = bare_lateness();
    report.note("bare start, until the program tells the time: median", part(&alone, 50), "ms");
    report.note("bare start, until the program tells the time: p99", part(&alone, 99), "ms");
    let few = measure_lateness("lateness", stores, FEW, FEW_ROUNDS, 1);
    report.compare("start lateness at 4 a second: median", part(&few, 50), "ms", Target::AtMost(2.0));
    report.compare("start lateness at 4 a second: p99", part(&few, 99), "ms", Target::AtMost(10.0));
    report.note("  more than a bare start: median", part(&few, 50) - part(&alone, 50), "ms");
    report.note("  more than a bare start: p99", part(&few, 99) - part(&alone, 99), "ms");
    let alone = bare_at_once();
    report.note("bare loop: 1000 programs that tell the time into files: last", alone, "ms");
    let many = measure_lateness("at-once-programs", stores, AT_ONCE, 3, 5);
    report.note("1000 programs due at one instant: median", part(&many, 50), "ms");
    report.compare("1000 programs due at one instant: last", part(&many, 100), "ms", Target::AtMost(1.3 * alone));
}

/// Milliseconds until the last of many programs has told the time, when nobody records anything: as many in flight as in
/// the other bare loop, each with a file for its output.
fn bare_at_once() -> f64 {
    let dir = scratch("bare-at-once");
    let clock = SystemClock::new().expect("a timer");
    let begin = clock.now().micros();
    let mut running: VecDeque<Child> = VecDeque::new();
    for number in 0..AT_ONCE {
        if running.len() >= IN_FLIGHT {
            wait(running.pop_front());
        }
        let output = fs::File::create(dir.join(number.to_string())).expect("a file");
        let child = Command::new("/bin/date").arg("+%s%N").stdin(Stdio::null()).stdout(output).spawn();
        running.push_back(child.expect("a program"));
    }
    running.into_iter().for_each(|child| wait(Some(child)));
    let told = (0..AT_ONCE)
        .filter_map(|number| told_after(&fs::read_to_string(dir.join(number.to_string())).expect("a file"), begin));
    let last = told.fold(0.0, f64::max);
    let _ = fs::remove_dir_all(dir);
    last
}

/// Milliseconds from the call that starts a bare program to the time that it tells, sorted. As many at once as under the
/// keeper, and as long after each other.
fn bare_lateness() -> Vec<f64> {
    let mut late = block_on(async {
        let clock = SystemClock::new().expect("a timer");
        let mut late = Vec::new();
        for _ in 0..FEW_ROUNDS {
            let second = clock.now().secs_up() + 1;
            clock.sleep(Instant::from_secs(second).since(clock.now())).await;
            let start = || {
                let mut command = Command::new("/bin/date");
                command.arg("+%s%N").stdin(Stdio::null()).stdout(Stdio::piped());
                let begin = clock.now().micros();
                (begin, command.spawn().expect("a program"))
            };
            let children: Vec<(i64, Child)> = (0..FEW).map(|_| start()).collect();
            late.extend(children.into_iter().filter_map(|(begin, child)| {
                let output = child.wait_with_output().expect("it ends").stdout;
                told_after(std::str::from_utf8(&output).ok()?, begin)
            }));
        }
        late
    });
    late.sort_by(f64::total_cmp);
    late
}

/// Milliseconds between an instant and the time that a program has told.
fn told_after(text: &str, micros: i64) -> Option<f64> {
    let nanos: i64 = text.trim().parse().ok()?;
    Some(number((nanos / 1_000 - micros).max(0).unsigned_abs()) / 1_000.0)
}

/// Milliseconds from due to start, sorted.
fn measure_lateness(name: &str, stores: Stores<'_>, jobs: usize, rounds: usize, every: u32) -> Vec<f64> {
    let dir = scratch(name);
    let runs = block_on(async {
        let rig = Rig::with_keeper(&dir, stores);
        let yaml = format!("program: [/bin/date, +%s%N]\noverlap: allow\nschedule: {{every: {every}s}}\n");
        rig.put_jobs(jobs, |_| yaml.clone()).await;
        // The first may have come while jobs were put.
        let mut runs = collect(&rig, jobs).await;
        runs.clear();
        runs.extend(collect(&rig, jobs * rounds).await);
        rig.stop().await;
        runs
    });
    let _ = fs::remove_dir_all(dir);
    let late = runs.iter().filter_map(|run| told_after(run.written.as_ref()?.tail.first()?, run.nominal.micros()));
    let mut late: Vec<f64> = late.collect();
    late.sort_by(f64::total_cmp);
    assert!(late.len() * 10 > runs.len() * 9, "programs told the time: {} of {}", late.len(), runs.len());
    late
}

pub(crate) async fn collect(rig: &Rig, many: usize) -> Vec<std::sync::Arc<cronhold_core::record::Run>> {
    let mut runs = Vec::new();
    while runs.len() < many {
        rig.notes.ended.ready().await;
        runs.extend(rig.notes.ended.take(many));
    }
    runs
}
