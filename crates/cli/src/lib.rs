//! The verbs of the command line. Each verb is a file that turns arguments into an answer; `render` alone makes text of
//! answers. Time, zone data and the terminal come in as arguments, so that a verb can be tested without a process.
//!
//! Verbs that ask a daemon do so with the client of `api`; `remote` finds the daemon, or has the binary answer for a store
//! in its place (`at_store`). Verbs that need a store of their own are defined here, with their help, and done by the
//! binary.

mod asked;
mod at_store;
mod definition;
mod failure;
mod follow;
mod input;
mod job_root;
mod log_args;
mod reference;
mod remote;
mod render;
mod tail;
mod verbs;
mod when;

use std::io::{ErrorKind, Write};
use std::sync::Arc;

use clap::{Command, CommandFactory, Parser, Subcommand};
use cronhold_schedule::{Instant, Zones};

use crate::remote::Remote;

#[cfg(test)]
pub(crate) use at_store::NoStores;
pub use at_store::{NamedStore, Served, Stores};
pub use failure::Failure;
pub use log_args::{LogArgs, LogFormat};
pub use reference::reference;
pub use remote::{Place, Surroundings};
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
    /// Whether progress may be shown while something is waited for.
    pub progress: bool,
    /// Which daemon the command line means.
    pub place: &'a Place,
    /// What the environment says of daemons.
    pub surroundings: &'a Surroundings,
    /// Who answers for stores that are worked on without a daemon.
    pub stores: &'a dyn Stores,
    /// Lets the process end when nobody reads its answers any more, for verbs that wait for something to tell.
    pub end_with_reader: fn(),
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
    /// The daemon cannot be reached, or cannot answer now.
    Unreachable,
}

impl Exit {
    /// The code that scripts see.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Refused => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
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
    /// Which daemon is meant, for verbs that ask one.
    #[command(flatten)]
    pub place: Place,
    /// What is asked.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Everything that can be asked.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a comment would become part of the help of the verb")]
pub enum Verb {
    Up(Up),
    #[command(flatten)]
    Remote(RemoteVerb),
    #[command(flatten)]
    Question(Question),
    Store(Store),
    Keeper(Keeper),
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

/// What only a daemon can answer or do: everything about jobs and runs.
#[derive(Debug, Subcommand)]
#[expect(private_interfaces, missing_docs, reason = "nobody else makes these, and a comment would become help")]
pub enum RemoteVerb {
    Add(verbs::add::Add),
    Upd(verbs::upd::Upd),
    Del(verbs::del::Del),
    List(verbs::list::List),
    Show(verbs::show::Show),
    Run(verbs::run::Run),
    Runs(verbs::runs::Runs),
    Logs(verbs::logs::Logs),
    Watch(verbs::watch::Watch),
    Start(verbs::start::Start),
    Skip(verbs::skip::Skip),
    Stop(verbs::stop::Stop),
    Kill(verbs::kill::Kill),
    Signal(verbs::signal::Signal),
    Mark(verbs::mark::Mark),
    Rerun(verbs::rerun::Rerun),
    Pause(verbs::pause::Pause),
    Resume(verbs::resume::Resume),
    Why(verbs::why::Why),
    Holes(verbs::holes::Holes),
    Import(verbs::import::Import),
    Backfill(verbs::backfill::Backfill),
    Reload(verbs::reload::Reload),
    Nodes(verbs::nodes::Nodes),
    Drain(verbs::drain::Drain),
    Token(verbs::token::Token),
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
    conclude(answer, session, out, err)
}

/// Asks the daemon. The answer goes to `out`; progress, notes and complaints go to `err`.
pub fn ask(verb: &RemoteVerb, session: &Session<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let answer = match verb {
        // What the token is can be told without a daemon.
        RemoteVerb::Token(token) => token.run(session, out),
        verb => verb.find(session).and_then(|remote| verb.run(&remote, out, err)),
    };
    conclude(answer, session, out, err)
}

impl RemoteVerb {
    /// Whether it may change jobs, or whether they are paused.
    pub fn changes_jobs(&self) -> bool {
        matches!(self, Self::Add(_) | Self::Upd(_) | Self::Del(_) | Self::Pause(_) | Self::Resume(_) | Self::Import(_))
    }

    /// Whether it shows what happens, and so has to be told of it.
    pub fn is_follower(&self) -> bool {
        matches!(self, Self::Watch(_) | Self::Logs(_))
    }

    /// Finds the daemon, or the store that is meant instead.
    fn find<'a>(&self, session: &'a Session<'a>) -> Result<Remote<'a>, Failure> {
        if matches!(self, Self::Reload(_)) {
            remote::needs_daemon(session, "job files are read by daemons")?;
        }
        Remote::find(session)
    }

    fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Failure> {
        match self {
            Self::Add(add) => add.run(remote, out, err),
            Self::Upd(upd) => upd.run(remote, out, err),
            Self::Del(del) => del.run(remote, out, err),
            Self::List(list) => list.run(remote, out, err),
            Self::Show(show) => show.run(remote, out, err),
            Self::Run(run) => run.run(remote, out, err),
            Self::Runs(runs) => runs.run(remote, out, err),
            Self::Logs(logs) => logs.run(remote, out, err),
            Self::Watch(watch) => watch.run(remote, out, err),
            Self::Start(start) => start.run(remote, out, err),
            Self::Skip(skip) => skip.run(remote, out, err),
            Self::Stop(stop) => stop.run(remote, out, err),
            Self::Kill(kill) => kill.run(remote, out, err),
            Self::Signal(signal) => signal.run(remote, out, err),
            Self::Mark(mark) => mark.run(remote, out, err),
            Self::Rerun(rerun) => rerun.run(remote, out, err),
            Self::Pause(pause) => pause.run(remote, out, err),
            Self::Resume(resume) => resume.run(remote, out, err),
            Self::Why(why) => why.run(remote, out, err),
            Self::Holes(holes) => holes.run(remote, out, err),
            Self::Import(import) => import.run(remote, out, err),
            Self::Backfill(backfill) => backfill.run(remote, out, err),
            Self::Reload(reload) => reload.run(remote, out, err),
            Self::Nodes(nodes) => nodes.run(remote, out, err),
            Self::Drain(drain) => drain.run(remote, out, err),
            Self::Token(token) => token.run(remote.session, out),
        }
    }
}

fn conclude(answer: Result<Exit, Failure>, session: &Session<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    // The part of an answer that there is comes before the complaint about the rest.
    let flushed = match out.flush() {
        // Whoever wanted the answer has read enough of it.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        flushed => flushed.map_err(Failure::Output),
    };
    match answer.and_then(|exit| flushed.map(|()| exit)) {
        Ok(exit) => exit,
        Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Exit::Done,
        Err(failure) => complain(&failure, session.colours, err),
    }
}

/// Says why something was not done, and what the process should exit with.
pub fn complain(failure: &Failure, colours: bool, err: &mut dyn Write) -> Exit {
    // Where complaints cannot be written, the exit code has to say it all.
    let _ = render::failure(failure, colours, err);
    failure.exit()
}
