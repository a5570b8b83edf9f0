//! Several nodes share many jobs, each due every second. One node after the other is killed with all of its programs
//! and restarted, while other parts fail, too. Nothing runs twice, every occurrence has an outcome, and the next due run
//! is not late.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cronhold_daemon::bench::samples::number;
use cronhold_daemon::clock::now;
use cronhold_schedule::{Instant, Span};

use crate::daemons::{Daemon, rest};
use crate::report::{Report, Target};

/// Time between two kills, and time until a killed node is restarted.
const EVERY: Span = Span::from_secs(15);
const AWAY: Span = Span::from_secs(5);
/// Time until all runs have an outcome. Runs of a killed node are declared lost when its heartbeats have been missing
/// long enough.
const SETTLE: Span = Span::from_secs(60);
/// Duplicate occurrences that are printed.
const SHOWN_MAX: usize = 10;

/// The delays of program starts in microseconds, by job and second.
type Starts = BTreeMap<(String, i64), Vec<u64>>;

/// What is killed, and when.
pub(crate) struct NodeKills<'a> {
    pub(crate) jobs: usize,
    pub(crate) nodes: usize,
    pub(crate) seconds: u64,
    /// How late the next due run may be after a kill, in milliseconds.
    pub(crate) late_most: Option<f64>,
    /// The file in which programs record their starts.
    pub(crate) starts: PathBuf,
    /// Starts a node with a name.
    pub(crate) start: &'a dyn Fn(&str) -> Daemon,
    /// Does more harm in a round, and undoes it.
    pub(crate) disturb: &'a mut dyn FnMut(usize, KillPhase, &[Daemon]),
}

/// When other parts fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillPhase {
    /// A node was killed.
    Killed,
    /// The node is about to be restarted.
    Restarting,
}

/// The script of a job, for bash.
pub(crate) fn script(starts: &Path) -> String {
    format!("echo \"$EPOCHREALTIME $CRONHOLD_JOB $CRONHOLD_NOMINAL_TIME\" >> {}", starts.display())
}

/// Kills nodes. The store has jobs that are due every second and carry out the script.
pub(crate) fn measure(report: &mut Report, kills: NodeKills<'_>) {
    let NodeKills { jobs, nodes, seconds, late_most, starts, start, disturb } = kills;
    let name = |number: usize| format!("node-{number}");
    let mut running: Vec<Daemon> = (0..nodes).map(|number| start(&name(number))).collect();
    rest(AWAY);
    let begin = now().secs_up();
    let mut killed = Vec::new();
    let rounds = usize::try_from(seconds / EVERY.secs()).expect("few rounds");
    for round in 0..rounds {
        rest(EVERY.minus(AWAY));
        killed.push(now());
        drop(running.remove(0));
        disturb(round, KillPhase::Killed, &running);
        rest(AWAY);
        disturb(round, KillPhase::Restarting, &running);
        running.push(start(&name(round % nodes)));
    }
    let end = now().secs();
    rest(SETTLE);
    let found = read(&starts);
    let of = format!("kills: {nodes} nodes, {jobs} jobs every second for {seconds} s");
    report.note(format!("{of}: kills"), number(killed.len() as u64), "");
    judge(report, jobs, &found, begin..end, &running);
    lateness(report, &found, &killed, begin..end, late_most);
}

fn read(starts: &Path) -> Starts {
    let text = fs::read_to_string(starts).expect("programs have started");
    let mut found = Starts::new();
    for line in text.lines() {
        let mut fields = line.split(' ');
        let [Some(at), Some(job), Some(nominal)] = [fields.next(), fields.next(), fields.next()] else { continue };
        let (Some(at), Ok(nominal)) = (micros(at), Instant::parse(nominal)) else { continue };
        let late = Instant::from_micros(at).since(nominal).micros();
        found.entry((job.to_owned(), nominal.secs())).or_default().push(late);
    }
    found
}

/// Reports occurrences that were started more than once, and those without an outcome in the store.
fn judge(report: &mut Report, jobs: usize, found: &Starts, span: std::ops::Range<i64>, running: &[Daemon]) {
    let doubled: Vec<_> = found.iter().filter(|(_, starts)| starts.len() > 1).map(|(which, _)| which).collect();
    doubled.iter().take(SHOWN_MAX).for_each(|which| println!("duplicate: {which:?}"));
    let all = jobs * usize::try_from(span.end - span.start).expect("the end is after the start");
    let started = found.keys().filter(|(_, second)| span.contains(second)).count();
    report.note("  occurrences", number(all as u64), "");
    report.note("  programs started", number(started as u64), "");
    report.note("  not started: lost with their node, or skipped", number((all - started) as u64), "");
    report.compare("  duplicates", number(doubled.len() as u64), "", Target::AtMost(0.0));
    let (since, until) = (Instant::from_secs(span.start).to_string(), Instant::from_secs(span.end).to_string());
    let holes = running.iter().find_map(|node| node.run_json(&["holes", "--since", &since, "--until", &until]));
    let holes = holes.and_then(|holes| holes["found"].as_u64()).expect("a node answers");
    report.compare("  lost: occurrences without an outcome", number(holes), "", Target::AtMost(0.0));
}

/// Reports the delay of the first runs after a kill, and of all others.
fn lateness(
    report: &mut Report,
    found: &Starts,
    kills: &[Instant],
    span: std::ops::Range<i64>,
    late_most: Option<f64>,
) {
    let next: Vec<i64> = kills.iter().map(|kill| kill.secs_up()).collect();
    let of = |is_wanted: &dyn Fn(i64) -> bool| {
        let wanted = found.iter().filter(|((_, second), _)| span.contains(second) && is_wanted(*second));
        let mut late: Vec<u64> = wanted.filter_map(|(_, starts)| starts.first().copied()).collect();
        late.sort_unstable();
        [50, 99, 100].map(|percent| {
            number(late.get(late.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0)) / 1_000.0
        })
    };
    let [median, most, last] = of(&|second| next.contains(&second));
    report.note("  due next after a kill: late, median", median, "ms");
    report.note("  due next after a kill: late, p99", most, "ms");
    match late_most {
        Some(most) => report.compare("  due next after a kill: late, last", last, "ms", Target::AtMost(most)),
        None => report.note("  due next after a kill: late, last", last, "ms"),
    }
    let [median, most, last] = of(&|second| !next.contains(&second));
    report.note("  all others: late, median", median, "ms");
    report.note("  all others: late, p99", most, "ms");
    report.note("  all others: late, last", last, "ms");
}

/// A time such as `1794832464.029690`, in microseconds.
pub(crate) fn micros(text: &str) -> Option<i64> {
    let (seconds, part) = text.split_once(['.', ','])?;
    Some(seconds.parse::<i64>().ok()? * 1_000_000 + part.parse::<i64>().ok()?)
}
