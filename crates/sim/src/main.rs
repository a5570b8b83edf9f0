//! `sim SEED` prints the film of a seed; `sim --seeds A..B` plays many and tells which of them fail.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;
use cronhold_schedule::Span;
use sim::{Settings, Showing, play, world};

/// Lines of the film that are shown of a seed that fails among many.
const LAST_LINES: usize = 25;
/// Seeds that are shown so at most; of the others only the number and the finding.
const SHOWN_MAX: usize = 3;

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
    /// How many nodes share the store.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=9))]
    nodes: u8,
    /// How long there is trouble, such as 10m; drawn from the seed when absent.
    #[arg(long, value_name = "SPAN", value_parser = length)]
    length: Option<Span>,
    /// How many jobs there are; drawn from the seed when absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=200))]
    jobs: Option<u8>,
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
    let showing = play(seed, Settings { film: true, ..arguments.settings() }, &world());
    for line in &showing.film {
        writeln!(out, "{line}")?;
    }
    Ok(showing.finding.is_none())
}

/// Plays many seeds and prints those that fail. Answers whether none did.
fn search((from, to): (u64, u64), arguments: &Arguments, out: &mut dyn Write) -> io::Result<bool> {
    let world = world();
    let mut failed = 0;
    let mut launches = 0;
    for seed in from..to {
        let Showing { finding, tally, .. } = play(seed, arguments.settings(), &world);
        launches += tally.launches;
        let Some(finding) = finding else { continue };
        failed += 1;
        writeln!(out, "seed {seed}: {finding}")?;
        if failed <= SHOWN_MAX {
            // The film follows from the seed, so it need not be made before somebody wants it.
            let film = play(seed, Settings { film: true, ..arguments.settings() }, &world).film;
            for line in &film[film.len().saturating_sub(LAST_LINES)..] {
                writeln!(out, "    {line}")?;
            }
        }
        out.flush()?;
    }
    let nodes = arguments.nodes;
    writeln!(out, "{failed} of {} seeds failed ({nodes} nodes, {launches} programs)", to.saturating_sub(from))?;
    Ok(failed == 0)
}

impl Arguments {
    fn settings(&self) -> Settings {
        Settings {
            nodes: usize::from(self.nodes),
            length: self.length,
            jobs: self.jobs.map(usize::from),
            ..Settings::default()
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
