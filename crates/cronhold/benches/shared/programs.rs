//! Real programs under the keeper, compared with a bare loop that starts the same programs and records nothing.

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
/// The measurement of start delays: programs per second, milliseconds between bare programs, and seconds.
const SPREAD: usize = 20;
const APART: u64 = 50;
const SPREAD_ROUNDS: usize = 40;
/// Programs at one instant, and number of instants.
const FEW: usize = 4;
const FEW_ROUNDS: usize = 50;
const AT_ONCE: usize = 1_000;

/// Measures a bare loop, and returns its seconds per program.
pub(crate) fn bare(report: &mut Report, clock: &dyn MachineClock) -> f64 {
    let took = bare_loop(clock, RUNS, || Command::new("/bin/true"));
    report.note("bare loop: start and wait, 64 in flight", number(RUNS as u64) / took, "/s");
    took / number(RUNS as u64)
}

/// The seconds that a bare loop needs to run `many` commands.
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

/// Programs per second, each fully recorded.
pub(crate) fn rate(stores: Stores<'_>) -> f64 {
    let dir = scratch("programs");
    let rate = block_on(async {
        let rig = Rig::with_keeper(&dir, stores);
        rig.put_jobs(IN_FLIGHT, |_| "program: [/bin/true]\noverlap: allow\n".to_owned()).await;
        for job in 0..IN_FLIGHT {
            Rig::run_once(&rig.node, job_id(job)).await;
        }
        let mut requests = JoinSet::new();
        let (begin, mut ended) = (rig.clock.uptime(), 0);
        while ended < RUNS {
            rig.notes.ended.ready().await;
            let over = rig.notes.ended.take(IN_FLIGHT);
            ended += over.len();
            for run in over {
                let (node, job) = (rig.node.clone(), run.job.clone());
                requests.spawn(async move { Rig::run_once(&node, job).await });
            }
            while requests.try_join_next().is_some() {}
        }
        let rate = number(ended as u64) / seconds(rig.clock.uptime().minus(begin));
        rig.stop().await;
        rate
    });
    let _ = fs::remove_dir_all(dir);
    rate
}

/// Measures the start delay of programs: one after the other, few at the same instant, and many. The program prints the
/// time, which takes some time after the spawn. So the same program is also measured without a scheduler, and that time
/// is subtracted where the report shows the time of the spawn.
pub(crate) fn lateness(report: &mut Report, stores: Stores<'_>) {
    let alone = bare_lateness();
    let own = part(&alone, 50);
    report.note("bare start, until the program prints the time: median", own, "ms");
    report.note("bare start, until the program prints the time: p99", part(&alone, 99), "ms");
    let spread = measure_lateness("lateness", stores, Due { jobs: SPREAD, every: 1, jitter: 1 }, SPREAD_ROUNDS);
    report.compare("start lateness, 20 a second: median", part(&spread.printed, 50) - own, "ms", Target::AtMost(2.0));
    report.compare("start lateness, 20 a second: p99", part(&spread.printed, 99) - own, "ms", Target::AtMost(10.0));
    report.note("  until the program prints the time: median", part(&spread.printed, 50), "ms");
    report.note("  until the node records the start: median", part(&spread.known, 50), "ms");
    let few = measure_lateness("lateness-of-few", stores, Due { jobs: FEW, every: 1, jitter: 0 }, FEW_ROUNDS);
    report.note("start lateness, 4 at one instant: median", part(&few.printed, 50) - own, "ms");
    report.note("start lateness, 4 at one instant: p99", part(&few.printed, 99) - own, "ms");
    let alone = bare_at_once();
    report.note("bare loop: 1000 programs print the time to files: last", alone, "ms");
    let many = measure_lateness("at-once-programs", stores, Due { jobs: AT_ONCE, every: 5, jitter: 0 }, 3);
    report.note("1000 programs due at one instant: median", part(&many.printed, 50), "ms");
    report.compare(
        "1000 programs due at one instant: last",
        part(&many.printed, 100),
        "ms",
        Target::AtMost(1.3 * alone),
    );
}

fn part(late: &[f64], percent: usize) -> f64 {
    late[(late.len() - 1) * percent / 100]
}

/// Milliseconds until the last of many programs has printed the time in a bare loop. As many programs are in flight as
/// in the other bare loop, each with its own output file.
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
    let printed = (0..AT_ONCE)
        .filter_map(|number| printed_after(&fs::read_to_string(dir.join(number.to_string())).expect("a file"), begin));
    let last = printed.fold(0.0, f64::max);
    let _ = fs::remove_dir_all(dir);
    last
}

/// Milliseconds from the start of a bare program to the time that it prints, sorted. Programs run one after the other.
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
            late.extend(std::str::from_utf8(&output).ok().and_then(|text| printed_after(text, begin)));
        }
        late
    });
    late.sort_by(f64::total_cmp);
    late
}

/// Milliseconds between an instant and the time that a program has printed.
fn printed_after(text: &str, micros: i64) -> Option<f64> {
    let nanos: i64 = text.trim().parse().ok()?;
    Some(number((nanos / 1_000 - micros).max(0).unsigned_abs()) / 1_000.0)
}

/// Number of jobs, seconds between their occurrences, and seconds of jitter.
#[derive(Clone, Copy)]
struct Due {
    jobs: usize,
    every: u32,
    jitter: u32,
}

/// Milliseconds since programs were due, sorted.
struct Late {
    /// Until the node recorded the start.
    known: Vec<f64>,
    /// Until the program printed the time.
    printed: Vec<f64>,
}

fn measure_lateness(name: &str, stores: Stores<'_>, due: Due, rounds: usize) -> Late {
    let dir = scratch(name);
    let Due { jobs, every, jitter } = due;
    let (many, late) = block_on(async {
        let rig = Rig::with_keeper(&dir, stores);
        let schedule = format!("schedule: {{every: {every}s, jitter: {jitter}s}}");
        let yaml = format!("program: [/bin/date, +%s%N]\noverlap: allow\n{schedule}\n");
        rig.put_jobs(jobs, |_| yaml.clone()).await;
        // The first instant may have passed while jobs were put.
        let mut runs = collect(&rig, jobs).await;
        runs.clear();
        runs.extend(collect(&rig, jobs * rounds).await);
        let mut late = Late { known: Vec::new(), printed: Vec::new() };
        for run in &runs {
            let due = rig.due(run).await;
            let known = run.entered(State::Running).map(|at| number(at.since(due).micros()) / 1_000.0);
            late.known.extend(known);
            let line = run.written.as_ref().and_then(|written| written.tail.first());
            late.printed.extend(line.and_then(|line| printed_after(line, due.micros())));
        }
        rig.stop().await;
        (runs.len(), late)
    });
    let _ = fs::remove_dir_all(dir);
    let Late { mut known, mut printed } = late;
    for late in [&mut known, &mut printed] {
        assert!(late.len() * 10 > many * 9, "programs that have started: {} of {many}", late.len());
        late.sort_by(f64::total_cmp);
    }
    Late { known, printed }
}

pub(crate) async fn collect(rig: &Rig, many: usize) -> Vec<std::sync::Arc<Run>> {
    let mut runs = Vec::new();
    while runs.len() < many {
        rig.notes.ended.ready().await;
        runs.extend(rig.notes.ended.take(many));
    }
    runs
}
