//! The verbs of the command line. Each verb is a file that turns arguments into an answer; `render` alone makes text of
//! answers. Time, zone data and the terminal come in as arguments, so that a verb can be tested without a process.
//!
//! Verbs that need a store or a daemon are defined here, with their help, and done by the binary.

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
pub use render::counted;
pub use verbs::keeper::Keeper;
pub use verbs::store::{Backup, Store, StoreVerb};
pub use verbs::up::Up;

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
    /// What is asked.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Everything that can be asked.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a comment would become part of the help of the verb")]
pub enum Verb {
    Up(Up),
    Keeper(Keeper),
    Store(Store),
    #[command(flatten)]
    Question(Question),
}

/// What can be answered without a store: questions about schedules and job files.
#[derive(Debug, Subcommand)]
#[expect(private_interfaces, missing_docs, reason = "nobody else makes questions, and a comment would become help")]
pub enum Question {
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

/// Answers a question. The answer goes to `out`, complaints go to `err`.
pub fn answer(question: &Question, session: &Session<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let answer = match question {
        Question::Next(next) => next.run(session, out),
        Question::Explain(explain) => explain.run(session, out),
        Question::Lint(lint) => lint.run(session, out),
        Question::Check(check) => check.run(session, out),
    };
    // The part of an answer that there is comes before the complaint about the rest.
    let flushed = out.flush().map_err(Failure::Output);
    match answer.and_then(|exit| flushed.map(|()| exit)) {
        Ok(exit) => exit,
        Err(failure) => complain(&failure, session.colours, err),
    }
}

/// Says why something was not done, and what the process should exit with.
pub fn complain(failure: &Failure, colours: bool, err: &mut dyn Write) -> Exit {
    // Where complaints cannot be written, the exit code has to say it all.
    let _ = render::failure(failure, colours, err);
    failure.exit()
}
