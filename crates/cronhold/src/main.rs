//! The binary: reads the clock, the terminal and the command line, and hands them to the rooms that do the work.

mod pipe;

use std::io::{self, BufWriter, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use cronhold_cli::{Cli, Session};
use cronhold_schedule::{Instant, Zones};

use crate::pipe::Pipe;

fn main() -> ExitCode {
    // Clap shows help and usage mistakes itself and exits with 0 or 2.
    let cli = Cli::parse();
    let zones = Arc::new(Zones::new(jiff::tz::TimeZoneDatabase::from_env()));
    let colours = io::stdout().is_terminal() && io::stderr().is_terminal() && colours_wanted();
    let session = Session { now: now(), zones: &zones, colours };
    let mut out = BufWriter::new(Pipe::new(io::stdout().lock()));
    let mut err = Pipe::new(io::stderr());
    ExitCode::from(cronhold_cli::run(&cli, &session, &mut out, &mut err).code())
}

#[expect(clippy::disallowed_methods, reason = "the binary is where the clock is read")]
fn now() -> Instant {
    Instant::from_micros(jiff::Timestamp::now().as_microsecond())
}

#[expect(clippy::disallowed_methods, reason = "the binary is where the environment is read")]
fn colours_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
