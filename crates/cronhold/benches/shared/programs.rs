//! Real programs under the keeper, beside a bare loop that starts the same programs and records nothing.

use std::collections::VecDeque;
use std::fs;
use std::process::{Child, Command, Stdio};

use cronhold_core::State;
use cronhold_core::record::Run;
use cronhold_daemon::clock::SystemClock;
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;
use tokio::task::JoinSet;

use crate::report::{Report, Target};
use crate::rig::{Rig, Stores, block_on, job_id, scratch, seconds};
use crate::throughput::number;

/// Programs that are in flight at once.
pub(crate) const IN_FLIGHT: usize = 64;
const RUNS: usize = 4_000;
/// Programs of one second, milliseconds between them if nobody spreads them, and seconds, that tell how late programs start.
const SPREAD: usize = 20;
const APART: u64 = 50;
const SPREAD_ROUNDS: usize = 40;
/// Programs at one instant, and how often.
const FEW: usize = 4;
const FEW_ROUNDS: usize = 50;
const AT_ONCE: usize = 1_000;

/// Seconds that a bare loop needs for so many programs.
pub(crate) fn bare(report: &mut Report, clock: &dyn MachineClock) -> f64 {
    let took = bare_loop(clock, RUNS, || Command::new("/bin/true"));
    report.note("bare loop: start and wait, 64 in flight", number(RUNS as u64) / took, "/s");
    took / number(RUNS as u64)
}

/// Seconds that a bare loop needs for so many commands.
pub(crate) fn bare_loop(clock: &dyn MachineClock, many: usize, command: impl Fn() -> Command) -> f64 {
    let begin = clock.uptime();
    let mut running: VecDeque<Child> = VecDeque::new();
    for _ in 0..many {
        if running.len() >= IN_FLIGHT {
            wait(running.pop_front());
        }
        let child = command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
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

/// How late programs start: one after the other, few at the same instant, and many. A program tells the time by itself,
/// and needs time for that after it was spawned; so the same program is started without us as well, and what it needs is
/// taken off where the time of the spawn is meant.
pub(crate) fn lateness(report: &mut Report, stores: Stores<'_>) {
    let alone = bare_lateness();
    let own = part(&alone, 50);
    report.note("bare start, until the program tells the time: median", own, "ms");
    report.note("bare start, until the program tells the time: p99", part(&alone, 99), "ms");
    let spread = measure_lateness("lateness", stores, Due { jobs: SPREAD, every: 1, jitter: 1 }, SPREAD_ROUNDS);
    report.compare("start lateness, 20 a second: median", part(&spread.told, 50) - own, "ms", Target::AtMost(2.0));
    report.compare("start lateness, 20 a second: p99", part(&spread.told, 99) - own, "ms", Target::AtMost(10.0));
    report.note("  until the program tells the time: median", part(&spread.told, 50), "ms");
    report.note("  until the node knows that it runs: median", part(&spread.known, 50), "ms");
    let few = measure_lateness("lateness-of-few", stores, Due { jobs: FEW, every: 1, jitter: 0 }, FEW_ROUNDS);
    report.note("start lateness, 4 at one instant: median", part(&few.told, 50) - own, "ms");
    report.note("start lateness, 4 at one instant: p99", part(&few.told, 99) - own, "ms");
    let alone = bare_at_once();
    report.note("bare loop: 1000 programs that tell the time into files: last", alone, "ms");
    let many = measure_lateness("at-once-programs", stores, Due { jobs: AT_ONCE, every: 5, jitter: 0 }, 3);
    report.note("1000 programs due at one instant: median", part(&many.told, 50), "ms");
    report.compare("1000 programs due at one instant: last", part(&many.told, 100), "ms", Target::AtMost(1.3 * alone));
}

fn part(late: &[f64], percent: usize) -> f64 {
    late[(late.len() - 1) * percent / 100]
}

/// Milliseconds until the last of many programs has told the time, when nobody records anything: as many in flight as in
/// the other bare loop, each with a file for its output.
fn bare_at_once() -> f64 {
    let dir = scratch("bare-at-once");
    let clock = block_on(async { SystemClock::new().expect("a timer") });
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

/// Milliseconds from the call that starts a bare program to the time that it tells, sorted; one after the other.
fn bare_lateness() -> Vec<f64> {
    let mut late = block_on(async {
        let clock = SystemClock::new().expect("a timer");
        let mut late = Vec::new();
        for _ in 0..SPREAD * SPREAD_ROUNDS / 4 {
            clock.sleep(Span::from_millis(APART)).await;
            let mut command = Command::new("/bin/date");
            command.arg("+%s%N").stdin(Stdio::null()).stdout(Stdio::piped());
            let begin = clock.now().micros();
            let output = command.output().expect("a program").stdout;
            late.extend(std::str::from_utf8(&output).ok().and_then(|text| told_after(text, begin)));
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

/// Jobs, every how many seconds they are due, and over how many they are spread.
#[derive(Clone, Copy)]
struct Due {
    jobs: usize,
    every: u32,
    jitter: u32,
}

/// Milliseconds after programs were due, sorted.
struct Late {
    /// Until the node knew that they run.
    known: Vec<f64>,
    /// Until they told the time.
    told: Vec<f64>,
}

fn measure_lateness(name: &str, stores: Stores<'_>, due: Due, rounds: usize) -> Late {
    let dir = scratch(name);
    let Due { jobs, every, jitter } = due;
    let (many, late) = block_on(async {
        let rig = Rig::with_keeper(&dir, stores);
        let schedule = format!("schedule: {{every: {every}s, jitter: {jitter}s}}");
        let yaml = format!("program: [/bin/date, +%s%N]\noverlap: allow\n{schedule}\n");
        rig.put_jobs(jobs, |_| yaml.clone()).await;
        // The first may have come while jobs were put.
        let mut runs = collect(&rig, jobs).await;
        runs.clear();
        runs.extend(collect(&rig, jobs * rounds).await);
        let mut late = Late { known: Vec::new(), told: Vec::new() };
        for run in &runs {
            let due = rig.due(run).await;
            let known = run.entered(State::Running).map(|at| number(at.since(due).micros()) / 1_000.0);
            late.known.extend(known);
            let line = run.written.as_ref().and_then(|written| written.tail.first());
            late.told.extend(line.and_then(|line| told_after(line, due.micros())));
        }
        rig.stop().await;
        (runs.len(), late)
    });
    let _ = fs::remove_dir_all(dir);
    let Late { mut known, mut told } = late;
    for late in [&mut known, &mut told] {
        assert!(late.len() * 10 > many * 9, "programs that have started: {} of {many}", late.len());
        late.sort_by(f64::total_cmp);
    }
    Late { known, told }
}

pub(crate) async fn collect(rig: &Rig, many: usize) -> Vec<std::sync::Arc<Run>> {
    let mut runs = Vec::new();
    while runs.len() < many {
        rig.notes.ended.ready().await;
        runs.extend(rig.notes.ended.take(many));
    }
    runs
}
