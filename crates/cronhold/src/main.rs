//! The binary: reads the clock, the terminal and the command line, and hands them to the rooms that do the work.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use cronhold_cli::{Cli, Exit, Session};
use cronhold_schedule::{Instant, Zones};

fn main() -> ExitCode {
    // Clap shows help and usage mistakes itself and exits with 0 or 2.
    let cli = Cli::parse();
    let zones = Arc::new(Zones::new(jiff::tz::TimeZoneDatabase::from_env()));
    let colours = io::stdout().is_terminal() && io::stderr().is_terminal() && colours_wanted();
    let session = Session { now: now(), zones: &zones, colours };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let exit =
        cronhold_cli::run(&cli, &session, &mut out, &mut io::stderr()).and_then(|exit| out.flush().map(|()| exit));
    match exit {
        Ok(exit) => ExitCode::from(exit.code()),
        // Whoever read the answer has read enough of it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: cannot write the answer: {error}");
            ExitCode::from(Exit::Refused.code())
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the binary is where the clock is read")]
fn now() -> Instant {
    Instant::from_micros(jiff::Timestamp::now().as_microsecond())
}

#[expect(clippy::disallowed_methods, reason = "the binary is where the environment is read")]
fn colours_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
