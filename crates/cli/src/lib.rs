//! The verbs of the command line. Each verb is a file that turns arguments into an answer; `render` alone makes text of
//! answers. Time, zone data and the terminal come in as arguments, so that a verb can be tested without a process.

mod asked;
mod failure;
mod input;
mod job_root;
mod reference;
mod render;
mod verbs;

use std::io::Write;
use std::sync::Arc;

use clap::{Command, CommandFactory, Parser, Subcommand};
use cronhold_schedule::{Instant, Zones};

pub use failure::Failure;
pub use reference::reference;

/// What a verb needs from the process it runs in.
#[derive(Debug)]
pub struct Session<'a> {
    /// The time at which the command was given.
    pub now: Instant,
    /// Zones that can be named.
    pub zones: &'a Arc<Zones>,
    /// Whether colours may be used in answers.
    pub colours: bool,
}

/// What the process should exit with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// Refused, or something is wrong with what was looked at.
    Refused,
    /// The command line itself is wrong.
    Usage,
}

impl Exit {
    /// The code that scripts see.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Refused => 1,
            Self::Usage => 2,
        }
    }
}

/// A job scheduler that runs jobs at the right time, once, and can always say why.
#[derive(Debug, Parser)]
#[command(
    name = "cronhold",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Next(verbs::next::Next),
    Explain(verbs::explain::Explain),
    Lint(verbs::lint::Lint),
    Check(verbs::check::Check),
}

impl Cli {
    /// The whole command line as clap knows it, for documents and completions.
    pub fn definition() -> Command {
        Self::command()
    }
}

/// Carries out a command. Answers go to `out`, complaints to `err`.
pub fn run(cli: &Cli, session: &Session<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let answer = match &cli.verb {
        Verb::Next(next) => next.run(session, out),
        Verb::Explain(explain) => explain.run(session, out),
        Verb::Lint(lint) => lint.run(session, out),
        Verb::Check(check) => check.run(session, out),
    };
    // The part of an answer that there is comes before the complaint about the rest.
    let flushed = out.flush().map_err(Failure::Output);
    let failure = match answer.and_then(|exit| flushed.map(|()| exit)) {
        Ok(exit) => return exit,
        Err(failure) => failure,
    };
    // Where complaints cannot be written, the exit code has to say it all.
    let _ = render::failure(&failure, session.colours, err);
    failure.exit()
}
