//! Real programs under the keeper, compared with a bare loop that starts the same programs and records nothing.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use cronhold_daemon::bench::machine::{IN_FLIGHT, measure_spawn_rate, wait_for};
use cronhold_daemon::bench::programs::{DueJobs, collect_due_runs, measure_process_rate, recorded_delays};
use cronhold_daemon::bench::samples::{LoopLimit, SampleSet, number};
use cronhold_daemon::clock::SystemClock;
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;

use crate::report::{Report, Target};
use crate::rig::{Stores, block_on, on_node_with_keeper, scratch};

const RUNS: LoopLimit = LoopLimit::Count(4_000);
/// The measurement of start delays: programs per second, milliseconds between bare programs, and seconds.
const SPREAD: usize = 20;
const APART: u64 = 50;
const SPREAD_ROUNDS: usize = 40;
/// The same with many jobs that are not due: programs per second, seconds, and jobs.
const LOADED_SPREAD: usize = 100;
const LOADED_ROUNDS: usize = 20;
const LOADED: usize = 100_000;
/// Programs at one instant, and number of instants.
const FEW: usize = 4;
const FEW_ROUNDS: usize = 50;
const AT_ONCE: usize = 1_000;

/// Measures a bare loop, and returns its seconds per program.
pub(crate) fn bare(report: &mut Report) -> f64 {
    let rate = bare_rate(RUNS, || Command::new("/bin/true"));
    report.note("bare loop: start and wait, 64 in flight", rate, "/s");
    1.0 / rate
}

/// The programs per second of a bare loop.
pub(crate) fn bare_rate(limit: LoopLimit, command: impl Fn() -> Command) -> f64 {
    block_on(measure_spawn_rate(limit, command)).expect("programs start")
}

/// Programs per second, each fully recorded.
pub(crate) fn rate(stores: Stores<'_>) -> f64 {
    let program = Path::new("/bin/true");
    on_node_with_keeper("programs", stores, async |node, _| measure_process_rate(node, program, RUNS).await)
}

/// Measures the start delay of programs: one after the other, few at the same instant, and many. The program prints the
/// time, which takes some time after the spawn. So the same program is also measured without a scheduler, and that time
/// is subtracted where the report shows the time of the spawn.
pub(crate) fn lateness(report: &mut Report, stores: Stores<'_>) {
    let alone = bare_lateness();
    let own = alone.median();
    report.note("bare start, until the program prints the time: median", own, "ms");
    report.note("bare start, until the program prints the time: p99", alone.percentile(99), "ms");
    let spread = measure_lateness("lateness", stores, 0, DueJobs { jobs: SPREAD, every: 1, jitter: 1 }, SPREAD_ROUNDS);
    report.compare("start lateness, 20 a second: median", spread.printed.median() - own, "ms", Target::AtMost(2.0));
    report.compare("start lateness, 20 a second: p99", spread.printed.percentile(99) - own, "ms", Target::AtMost(10.0));
    report.note("  until the program prints the time: median", spread.printed.median(), "ms");
    report.note("  until the node records the start: median", spread.known.median(), "ms");
    let few = measure_lateness("lateness-of-few", stores, 0, DueJobs { jobs: FEW, every: 1, jitter: 0 }, FEW_ROUNDS);
    report.note("start lateness, 4 at one instant: median", few.printed.median() - own, "ms");
    report.note("start lateness, 4 at one instant: p99", few.printed.percentile(99) - own, "ms");
    let alone = bare_at_once();
    report.note("bare loop: 1000 programs print the time to files: last", alone, "ms");
    let many = measure_lateness("at-once-programs", stores, 0, DueJobs { jobs: AT_ONCE, every: 5, jitter: 0 }, 3);
    report.note("1000 programs due at one instant: median", many.printed.median(), "ms");
    report.compare(
        "1000 programs due at one instant: last",
        many.printed.percentile(100),
        "ms",
        Target::AtMost(1.3 * alone),
    );
}

/// Measures the start delay of programs while many other jobs are loaded.
pub(crate) fn loaded_lateness(report: &mut Report, stores: Stores<'_>) {
    let own = bare_lateness().median();
    let due = DueJobs { jobs: LOADED_SPREAD, every: 1, jitter: 1 };
    let late = measure_lateness("lateness-loaded", stores, LOADED, due, LOADED_ROUNDS).printed;
    let what = format!("start lateness, {LOADED_SPREAD} a second, {LOADED} jobs loaded");
    report.compare(format!("{what}: median"), late.median() - own, "ms", Target::AtMost(1.5));
    report.compare(format!("{what}: p99"), late.percentile(99) - own, "ms", Target::AtMost(6.0));
}

/// A job that is due at 3 o'clock on one day of the year, so that hardly any is due during a measurement.
pub(crate) fn rare_job(number: usize) -> String {
    let (day, month) = (number % 28 + 1, number / 28 % 12 + 1);
    format!("program: {{noop: true}}\nschedule: {{cron: \"0 3 {day} {month} *\", timezone: Europe/Berlin}}\n")
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
            wait_for(running.pop_front()).expect("it ends");
        }
        let output = fs::File::create(dir.join(number.to_string())).expect("a file");
        let child = Command::new("/bin/date").arg("+%s%N").stdin(Stdio::null()).stdout(output).spawn();
        running.push_back(child.expect("a program"));
    }
    running.into_iter().for_each(|child| wait_for(Some(child)).expect("it ends"));
    let printed = (0..AT_ONCE)
        .filter_map(|number| printed_after(&fs::read_to_string(dir.join(number.to_string())).expect("a file"), begin));
    let last = printed.fold(0.0, f64::max);
    let _ = fs::remove_dir_all(dir);
    last
}

/// The time from the start of a bare program to the time that it prints. Programs run one after the other.
pub(crate) fn bare_lateness() -> SampleSet {
    block_on(async {
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
        SampleSet::new(late)
    })
}

/// Milliseconds between an instant and the time that a program has printed.
fn printed_after(text: &str, micros: i64) -> Option<f64> {
    let nanos: i64 = text.trim().parse().ok()?;
    Some(number((nanos / 1_000 - micros).max(0).unsigned_abs()) / 1_000.0)
}

/// How long after they were due programs started.
struct Late {
    /// Until the node recorded the start.
    known: SampleSet,
    /// Until the program printed the time.
    printed: SampleSet,
}

fn measure_lateness(name: &str, stores: Stores<'_>, loaded: usize, due: DueJobs, rounds: usize) -> Late {
    let runs = on_node_with_keeper(name, stores, async |node, _| {
        // The first of these are replaced by the jobs that are due.
        node.put_jobs(loaded, rare_job).await?;
        collect_due_runs(node, "[/bin/date, +%s%N]", due, due.jobs * rounds).await
    });
    let printed = runs.iter().filter_map(|(run, due)| {
        let line = run.written.as_ref().and_then(|written| written.tail.first());
        line.and_then(|line| printed_after(line, due.micros()))
    });
    let late = Late { known: recorded_delays(&runs), printed: SampleSet::new(printed.collect()) };
    for samples in [&late.known, &late.printed] {
        let (count, many) = (samples.count(), runs.len());
        assert!(count * 10 > many * 9, "programs that have started: {count} of {many}");
    }
    late
}
