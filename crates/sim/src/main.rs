//! `sim SEED` prints the trace of one seed; `sim --seeds A..B` runs many seeds and prints those that fail.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use clap::Parser;
use cronhold_core::DecisionContext;
use cronhold_schedule::Span;
use sim::{ShrunkFailure, SimResult, SimSettings, Violation, shrink, simulate, world};

/// A simulation allocates many small objects.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of failing seeds in a search that are shrunk. Of the others, only the seed and the finding are printed.
const SHRUNK_MAX: usize = 3;

/// Run real engines in virtual time on a faulty store and check their guarantees
#[derive(Debug, Parser)]
#[command(name = "sim", arg_required_else_help = true)]
struct Arguments {
    /// Seed whose trace is printed, one line per event; the same seed gives the same trace
    #[arg(value_name = "SEED", conflicts_with = "seeds", required_unless_present = "seeds")]
    seed: Option<u64>,
    /// Range of seeds to run without a trace, such as 1..1000; the end is excluded
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    seeds: Option<(u64, u64)>,
    /// Number of nodes that share the store; drawn from the seed by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=9))]
    nodes: Option<u8>,
    /// Duration of the fault phase, such as 10m; drawn from the seed by default
    #[arg(long, value_name = "SPAN", value_parser = length)]
    length: Option<Span>,
    /// Number of jobs; drawn from the seed by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=2_000))]
    jobs: Option<u16>,
    /// Run a large simulation without a trace: a thousand jobs on five nodes
    #[arg(long)]
    scale: bool,
    /// Print the smallest scenario that still fails instead of the whole trace
    #[arg(long)]
    shrink: bool,
    /// Print the trace of the smallest scenario that still fails
    #[arg(long)]
    trace: bool,
    /// Number of seeds that run in parallel; the number of processors by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: Option<u8>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut out = BufWriter::new(io::stdout().lock());
    let is_sound = match (arguments.seed, arguments.seeds) {
        (Some(seed), _) => show(seed, &arguments, &mut out),
        (None, seeds) => search(seeds.unwrap_or_default(), &arguments, &mut out),
    };
    // A write error means that the reader has closed the pipe, which is not a failure.
    match is_sound.and_then(|is_sound| out.flush().map(|()| is_sound)) {
        Ok(false) => ExitCode::FAILURE,
        Ok(true) | Err(_) => ExitCode::SUCCESS,
    }
}

/// Prints the trace of a seed. Returns true if no checker found a violation.
fn show(seed: u64, arguments: &Arguments, out: &mut dyn Write) -> io::Result<bool> {
    let (world, settings) = (world(), arguments.settings());
    let wants_trace = !(arguments.scale || arguments.shrink);
    let SimResult { finding, trace, lasted, steps, tally, .. } =
        simulate(seed, SimSettings { trace: wants_trace, ..settings }, &world);
    for line in &trace {
        writeln!(out, "{line}")?;
    }
    if arguments.scale {
        let (units, runs, launches) = (tally.units, tally.runs, tally.launches);
        writeln!(out, "{lasted}, {steps} steps, {units} units, {runs} runs, {launches} programs")?;
    }
    if let Some(finding) = &finding {
        if arguments.scale {
            writeln!(out, "seed {seed}: {finding}")?;
        } else {
            print_shrunken(seed, finding, arguments, &world, out)?;
        }
    }
    Ok(finding.is_none())
}

/// Prints the smallest scenario that fails in the same way as the seed does.
fn print_shrunken(
    seed: u64,
    finding: &Violation,
    arguments: &Arguments,
    world: &DecisionContext,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "seed {seed}: {finding}")?;
    out.flush()?;
    let ShrunkFailure { result, events, attempts, .. } = shrink(seed, arguments.settings(), finding, world);
    let left = result.events.len();
    writeln!(out, "  {left} of {events} events suffice (after {attempts} runs):")?;
    for event in &result.events {
        writeln!(out, "    {event}")?;
    }
    if let Some(finding) = &result.finding {
        writeln!(out, "  {finding}")?;
    }
    if arguments.trace {
        for line in &result.trace {
            writeln!(out, "    {line}")?;
        }
    }
    out.flush()
}

/// Runs many seeds and prints those that fail. Returns true if none did.
fn search((from, to): (u64, u64), arguments: &Arguments, out: &mut dyn Write) -> io::Result<bool> {
    let world = world();
    let (mut failed, mut launches) = (0, 0);
    let mut printed = Ok(());
    run_all(from..to, arguments, &world, |seed, SimResult { finding, tally, .. }| {
        launches += tally.launches;
        let Some(finding) = finding else { return };
        failed += 1;
        let shown = if failed <= SHRUNK_MAX && !arguments.scale {
            print_shrunken(seed, &finding, arguments, &world, out)
        } else {
            writeln!(out, "seed {seed}: {finding}").and_then(|()| out.flush())
        };
        if printed.is_ok() {
            printed = shown;
        }
    });
    printed?;
    writeln!(out, "{failed} of {} seeds failed ({launches} programs)", to.saturating_sub(from))?;
    Ok(failed == 0)
}

/// Runs seeds in parallel and passes their results to `report` in the order of the seeds.
fn run_all(
    seeds: std::ops::Range<u64>,
    arguments: &Arguments,
    world: &DecisionContext,
    mut report: impl FnMut(u64, SimResult),
) {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.map_or(processors, usize::from);
    let next = AtomicU64::new(seeds.start);
    let (settings, end) = (arguments.settings(), seeds.end);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (next, sender) = (&next, sender.clone());
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || sender.send((seed, simulate(seed, settings, world))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let (mut early, mut expected) = (BTreeMap::new(), seeds.start);
        for (seed, result) in receiver {
            early.insert(seed, result);
            while let Some(result) = early.remove(&expected) {
                report(expected, result);
                expected += 1;
            }
        }
    });
}

impl Arguments {
    fn settings(&self) -> SimSettings {
        SimSettings {
            nodes: self.nodes.map_or(0, usize::from),
            length: self.length,
            jobs: self.jobs.map(usize::from),
            scale: self.scale,
            ..SimSettings::default()
        }
    }
}

fn seeds(text: &str) -> Result<(u64, u64), String> {
    let wrong =
        || format!("`{text}` is not a range of seeds: expected the first seed and the excluded end, such as 1..1000");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let (from, to) = (from.parse().map_err(|_| wrong())?, to.parse().map_err(|_| wrong())?);
    if from < to { Ok((from, to)) } else { Err(wrong()) }
}

fn length(text: &str) -> Result<Span, String> {
    let span = Span::parse(text).map_err(|error| error.to_string())?;
    let longest = Span::from_secs(86_400);
    if span < Span::from_secs(10) || span > longest {
        return Err(format!("expected at least 10s and at most {longest}"));
    }
    Ok(span)
}
