//! The command line. Each command has a file in `verbs`; only `render` prints. Time, zone data and the terminal are
//! arguments, so that a command can be tested without a process.
//!
//! Commands that need a daemon use the client of `api`. `remote` finds the daemon; with `--store` the binary serves the
//! store in its place (`store_server`). Commands that open a store themselves are defined here with their help, and
//! implemented by the binary.

mod bench_report;
mod bulk;
mod chain;
mod definition;
mod failure;
mod follow;
mod input;
mod job_root;
mod log_args;
mod plugin_trial;
mod reference;
mod remote;
mod render;
mod resolved_schedule;
mod store_server;
mod stream_filter;
mod tail;
mod time_input;
mod verbs;

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;

use clap::{Command, CommandFactory, Parser, Subcommand};
use cronhold_schedule::{Instant, ZoneRegistry};

use crate::remote::{CommandSubject, RemoteDaemon};
use crate::render::TerminalWriter;

pub use bench_report::{BenchFigure, BenchReport};
pub use failure::CliError;
pub use log_args::{LogArgs, LogFormat};
pub use plugin_trial::PluginTrialEvent;
pub use reference::reference;
pub use remote::{CliEnv, DaemonFlags, SidejobStore, TaskStorePlace, task_store_place};
pub use render::counted;
#[cfg(test)]
pub(crate) use store_server::NoStoreServer;
pub use store_server::{ForeignJob, NamedStore, ServedStore, StoreServer};
pub use verbs::bench::BenchArgs;
pub use verbs::keeper::KeeperArgs;
pub use verbs::plugin::{PluginCheckArgs, PluginCommand, PluginVerb, TrialPrinter};
pub use verbs::store::{BackupArgs, StoreCommand, StoreVerb};
pub use verbs::up::UpArgs;
pub use verbs::worker::{WorkerCheckArgs, WorkerCommand, WorkerRunArgs, WorkerUse, WorkerVerb};

/// What a command needs from its process.
#[derive(Debug)]
pub struct CliSession<'a> {
    /// Start time of the command.
    pub now: Instant,
    /// Known time zones.
    pub zones: &'a Arc<ZoneRegistry>,
    /// Whether the output may contain colours.
    pub colours: bool,
    /// Whether results go to a terminal.
    pub is_terminal: bool,
    /// Whether to show progress while waiting.
    pub progress: bool,
    /// Options that select the daemon.
    pub place: &'a DaemonFlags,
    /// Environment variables that select the daemon.
    pub surroundings: &'a CliEnv,
    /// Serves stores for commands without a daemon.
    pub stores: &'a dyn StoreServer,
    /// Asks a question on the terminal, and returns whether the answer is yes; `None` if there is no terminal.
    pub prompt: Option<fn(&str) -> bool>,
    /// Ends the process when the reader of its output has gone, for commands that wait for events.
    pub end_with_reader: fn(),
}

/// Exit status of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Success.
    Done,
    /// The request was refused, or a check found a problem.
    Refused,
    /// Invalid command line.
    Usage,
    /// The daemon is unreachable or not ready.
    Unreachable,
}

impl ExitStatus {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Refused => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
        }
    }
}

/// A job scheduler that runs each job once per scheduled time, and explains why a run did or did not happen.
#[derive(Debug, Parser)]
#[command(
    name = "cronhold",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Options that select the daemon.
    #[command(flatten)]
    pub place: DaemonFlags,
    /// The command.
    #[command(subcommand)]
    pub verb: CliVerb,
}

/// All commands.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a comment would become part of the help of the verb")]
pub enum CliVerb {
    Up(UpArgs),
    #[command(flatten)]
    Remote(RemoteVerb),
    #[command(flatten)]
    Question(OfflineVerb),
    Store(StoreCommand),
    Plugin(PluginCommand),
    Worker(WorkerCommand),
    Bench(BenchArgs),
    Keeper(KeeperArgs),
}

/// Commands about schedules and job files, which need neither daemon nor store.
#[derive(Debug, Subcommand)]
#[expect(private_interfaces, missing_docs, reason = "only clap constructs these, and a comment would become help")]
pub enum OfflineVerb {
    Next(verbs::next::NextArgs),
    Explain(verbs::explain::ExplainArgs),
    Lint(verbs::lint::LintArgs),
    Check(verbs::check::CheckArgs),
}

/// Commands about jobs, runs and tasks, which need a daemon or a shared store.
#[derive(Debug, Subcommand)]
#[expect(private_interfaces, missing_docs, reason = "only clap constructs these, and a comment would become help")]
pub enum RemoteVerb {
    Add(verbs::add::AddArgs),
    Upd(verbs::upd::UpdArgs),
    Del(verbs::del::DelArgs),
    Rename(verbs::rename::RenameArgs),
    List(verbs::list::ListArgs),
    Show(verbs::show::ShowArgs),
    Run(verbs::run::RunArgs),
    Trigger(verbs::trigger::TriggerArgs),
    Triggers(verbs::triggers::TriggersArgs),
    Runs(verbs::runs::RunsArgs),
    Logs(verbs::logs::LogsArgs),
    Watch(verbs::watch::WatchArgs),
    Start(verbs::start::StartArgs),
    Skip(verbs::skip::SkipArgs),
    Stop(verbs::stop::StopArgs),
    Kill(verbs::kill::KillArgs),
    Signal(verbs::signal::SignalArgs),
    Mark(verbs::mark::MarkArgs),
    Rerun(verbs::rerun::RerunArgs),
    Pause(verbs::pause::PauseArgs),
    Resume(verbs::resume::ResumeArgs),
    Coming(verbs::coming::ComingArgs),
    Why(verbs::why::WhyArgs),
    Holes(verbs::holes::HolesArgs),
    Import(verbs::import::ImportArgs),
    Backfill(verbs::backfill::BackfillArgs),
    Reload(verbs::reload::ReloadArgs),
    Nodes(verbs::nodes::NodesArgs),
    Pools(verbs::pools::PoolsArgs),
    Task(verbs::task::TaskCommand),
    Channel(verbs::channel::ChannelCommand),
    Queues(verbs::queues::QueuesArgs),
    Workers(verbs::workers::WorkersArgs),
    Drain(verbs::drain::DrainArgs),
    Token(verbs::token::TokenArgs),
}

impl Cli {
    /// The clap definition of the command line, for the reference.
    pub fn definition() -> Command {
        Self::command()
    }
}

/// Runs a command that needs no daemon. Results go to `out`, errors to `err`.
pub fn answer(
    question: &OfflineVerb,
    session: &CliSession<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> ExitStatus {
    let mut shown = TerminalWriter::new(out, session.colours);
    let answer = match question {
        OfflineVerb::Next(next) => next.run(session, &mut shown),
        OfflineVerb::Explain(explain) => explain.run(session, &mut shown),
        OfflineVerb::Lint(lint) => lint.run(session, &mut shown),
        OfflineVerb::Check(check) => check.run(session, &mut shown),
    };
    let written = shown.finish();
    conclude(answer, written, session, err)
}

/// Runs a command on the daemon. Results go to `out`; progress, notes and errors go to `err`.
pub fn ask(verb: &RemoteVerb, session: &CliSession<'_>, out: &mut dyn Write, err: &mut dyn Write) -> ExitStatus {
    let mut shown_err = TerminalWriter::new(err, session.colours);
    let mut answer = |out: &mut dyn Write| match verb {
        // `token show` works without a running daemon.
        RemoteVerb::Token(token) => token.run(session, out),
        verb => verb.find(session).and_then(|remote| verb.run(&remote, out, &mut shown_err)),
    };
    let (answer, written) = match verb.program_output(session) {
        Some(ProgramOutput::Raw) => (answer(out), out.flush()),
        program_output => {
            let mut shown = TerminalWriter::new(out, session.colours || program_output.is_some());
            (answer(&mut shown), shown.finish())
        }
    };
    // If standard error cannot be written, only the exit code is left.
    let _ = shown_err.finish();
    conclude(answer, written, session, err)
}

/// How the output of a program is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramOutput {
    /// Byte for byte.
    Raw,
    /// As text with colours; everything else that could control a terminal is escaped.
    Escaped,
}

impl RemoteVerb {
    /// Whether the command may change jobs or pauses.
    pub fn changes_jobs(&self) -> bool {
        matches!(
            self,
            Self::Add(_)
                | Self::Upd(_)
                | Self::Del(_)
                | Self::Rename(_)
                | Self::Pause(_)
                | Self::Resume(_)
                | Self::Import(_)
        )
    }

    /// How the command prints the output of a program; `None` if it prints none.
    fn program_output(&self, session: &CliSession<'_>) -> Option<ProgramOutput> {
        let raw = match self {
            Self::Logs(logs) => logs.raw,
            Self::Run(run) => run.prints_output()?,
            _ => return None,
        };
        Some(if raw || !session.is_terminal { ProgramOutput::Raw } else { ProgramOutput::Escaped })
    }

    /// Whether the command follows events, so that its store must receive notifications.
    pub fn is_follower(&self) -> bool {
        matches!(self, Self::Watch(_) | Self::Logs(_))
    }

    /// Finds the daemon, or the store that is used instead.
    fn find<'a>(&self, session: &'a CliSession<'a>) -> Result<RemoteDaemon<'a>, CliError> {
        if matches!(self, Self::Reload(_)) {
            remote::needs_daemon(session, "`cronhold reload` needs a daemon")?;
        }
        let subject = match self {
            Self::Task(_) | Self::Channel(_) | Self::Queues(_) | Self::Workers(_) => CommandSubject::Tasks,
            _ => CommandSubject::Jobs,
        };
        RemoteDaemon::find_for(session, subject)
    }

    fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<ExitStatus, CliError> {
        match self {
            Self::Add(add) => add.run(remote, out, err),
            Self::Upd(upd) => upd.run(remote, out, err),
            Self::Del(del) => del.run(remote, out, err),
            Self::Rename(rename) => rename.run(remote, out, err),
            Self::List(list) => list.run(remote, out, err),
            Self::Show(show) => show.run(remote, out, err),
            Self::Run(run) => run.run(remote, out, err),
            Self::Trigger(trigger) => trigger.run(remote, out, err),
            Self::Triggers(triggers) => triggers.run(remote, out, err),
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
            Self::Coming(coming) => coming.run(remote, out, err),
            Self::Why(why) => why.run(remote, out, err),
            Self::Holes(holes) => holes.run(remote, out, err),
            Self::Import(import) => import.run(remote, out, err),
            Self::Backfill(backfill) => backfill.run(remote, out, err),
            Self::Reload(reload) => reload.run(remote, out, err),
            Self::Nodes(nodes) => nodes.run(remote, out, err),
            Self::Pools(pools) => pools.run(remote, out, err),
            Self::Task(task) => task.run(remote, out, err),
            Self::Channel(channel) => channel.run(remote, out, err),
            Self::Queues(queues) => queues.run(remote, out, err),
            Self::Workers(workers) => workers.run(remote, out, err),
            Self::Drain(drain) => drain.run(remote, out, err),
            Self::Token(token) => token.run(remote.session, out),
        }
    }
}

/// Prints the error of a command. Its result has been written and flushed before.
fn conclude(
    answer: Result<ExitStatus, CliError>,
    written: io::Result<()>,
    session: &CliSession<'_>,
    err: &mut dyn Write,
) -> ExitStatus {
    let flushed = match written {
        // The reader has gone; that is not an error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        flushed => flushed.map_err(CliError::Output),
    };
    match answer.and_then(|exit| flushed.map(|()| exit)) {
        Ok(exit) => exit,
        Err(CliError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitStatus::Done,
        Err(failure) => complain(&failure, session.colours, err),
    }
}

/// Prints the error and returns the exit status.
pub fn complain(failure: &CliError, colours: bool, err: &mut dyn Write) -> ExitStatus {
    // If standard error cannot be written, only the exit code is left.
    let mut shown = TerminalWriter::new(err, colours);
    let _ = render::failure(failure, colours, &mut shown);
    let _ = shown.finish();
    failure.exit()
}
