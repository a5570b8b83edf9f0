//! `sim SEED` prints the film of a seed; `sim --seeds A..B` plays many and tells which of them fail.

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

/// A simulation makes and drops small things all the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Seeds that fail among many of which the smallest workload that fails is looked for; of the others only the number
/// and the finding are shown.
const SHRUNKEN_MAX: usize = 3;

/// Plays real engines in virtual time on a store that fails, and checks that they keep their promises.
#[derive(Debug, Parser)]
#[command(name = "sim", arg_required_else_help = true)]
struct Arguments {
    /// The seed whose film is printed, one line for each event; the same seed gives the same film.
    #[arg(value_name = "SEED", conflicts_with = "seeds", required_unless_present = "seeds")]
    seed: Option<u64>,
    /// Seeds that are played without a film, such as 1..1000; the last one is not played.
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    seeds: Option<(u64, u64)>,
    /// How many nodes share the store; drawn from the seed when absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=9))]
    nodes: Option<u8>,
    /// How long there is trouble, such as 10m; drawn from the seed when absent.
    #[arg(long, value_name = "SPAN", value_parser = length)]
    length: Option<Span>,
    /// How many jobs there are; drawn from the seed when absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=2_000))]
    jobs: Option<u16>,
    /// Plays a large simulation without a film: a thousand jobs on five nodes.
    #[arg(long)]
    scale: bool,
    /// Looks for the smallest workload that still fails, instead of the film of the whole one.
    #[arg(long)]
    shrink: bool,
    /// Prints the film of the smallest workload that fails.
    #[arg(long)]
    trace: bool,
    /// Seeds that are played at once; as many as there are processors when absent.
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
    // Whoever reads may have heard enough and gone.
    match is_sound.and_then(|is_sound| out.flush().map(|()| is_sound)) {
        Ok(false) => ExitCode::FAILURE,
        Ok(true) | Err(_) => ExitCode::SUCCESS,
    }
}

/// Prints the film of a seed. Answers whether nothing was found.
fn show(seed: u64, arguments: &Arguments, out: &mut dyn Write) -> io::Result<bool> {
    let (world, settings) = (world(), arguments.settings());
    let wants_film = !(arguments.scale || arguments.shrink);
    let SimResult { finding, trace, lasted, steps, tally, .. } =
        simulate(seed, SimSettings { trace: wants_film, ..settings }, &world);
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
            tell_shrunken(seed, finding, arguments, &world, out)?;
        }
    }
    Ok(finding.is_none())
}

/// Prints the smallest workload that still fails like the one of a seed.
fn tell_shrunken(
    seed: u64,
    finding: &Violation,
    arguments: &Arguments,
    world: &DecisionContext,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "seed {seed}: {finding}")?;
    out.flush()?;
    let ShrunkFailure { showing, acts, plays, .. } = shrink(seed, arguments.settings(), finding, world);
    let left = showing.acts.len();
    writeln!(out, "  {left} of {acts} acts are enough (played {plays} times):")?;
    for act in &showing.acts {
        writeln!(out, "    {act}")?;
    }
    if let Some(finding) = &showing.finding {
        writeln!(out, "  {finding}")?;
    }
    if arguments.trace {
        for line in &showing.trace {
            writeln!(out, "    {line}")?;
        }
    }
    out.flush()
}

/// Plays many seeds and prints those that fail. Answers whether none did.
fn search((from, to): (u64, u64), arguments: &Arguments, out: &mut dyn Write) -> io::Result<bool> {
    let world = world();
    let (mut failed, mut launches) = (0, 0);
    let mut said = Ok(());
    play_all(from..to, arguments, &world, |seed, SimResult { finding, tally, .. }| {
        launches += tally.launches;
        let Some(finding) = finding else { return };
        failed += 1;
        let shown = if failed <= SHRUNKEN_MAX && !arguments.scale {
            tell_shrunken(seed, &finding, arguments, &world, out)
        } else {
            writeln!(out, "seed {seed}: {finding}").and_then(|()| out.flush())
        };
        if said.is_ok() {
            said = shown;
        }
    });
    said?;
    writeln!(out, "{failed} of {} seeds failed ({launches} programs)", to.saturating_sub(from))?;
    Ok(failed == 0)
}

/// Plays seeds at once and tells what came of them, in their order.
fn play_all(
    seeds: std::ops::Range<u64>,
    arguments: &Arguments,
    world: &DecisionContext,
    mut tell: impl FnMut(u64, SimResult),
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
        for (seed, showing) in receiver {
            early.insert(seed, showing);
            while let Some(showing) = early.remove(&expected) {
                tell(expected, showing);
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
        || format!("`{text}` is not a range of seeds: expected the first and the one after the last, such as 1..1000");
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
