//! `cronhold task`: one file per operation on tasks. This file has what they share: JSON values and ports on the command
//! line.

mod adopt;
mod alias;
mod connect;
mod delete;
mod disown;
mod list;
mod port;
mod queue;
mod read;
mod run;
mod show;
mod state;
mod terminate;
mod tree;
mod write;

use std::io::Write;

use clap::{Args, Subcommand};
use cronhold_api::TaskDetail;
use cronhold_core::task::{JsonText, PortDirection};
use cronhold_schedule::text::shortened;

use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus};

/// Create tasks, read and write their ports, and control them
#[derive(Debug, Args)]
#[command(after_help = super::SIDEJOB_HELP)]
pub(crate) struct TaskCommand {
    /// Operation
    #[command(subcommand)]
    verb: TaskVerb,
}

/// Operations on tasks.
#[derive(Debug, Subcommand)]
enum TaskVerb {
    Queue(queue::TaskQueueArgs),
    List(list::TaskListArgs),
    Show(show::TaskShowArgs),
    Tree(tree::TaskTreeArgs),
    Write(write::TaskWriteArgs),
    Read(read::TaskReadArgs),
    Port(port::TaskPortArgs),
    Connect(connect::TaskConnectArgs),
    State(state::TaskStateArgs),
    Run(run::TaskRunArgs),
    Terminate(terminate::TaskTerminateArgs),
    Delete(delete::TaskDeleteArgs),
    Alias(alias::TaskAliasArgs),
    Adopt(adopt::TaskAdoptArgs),
    Disown(disown::TaskDisownArgs),
}

impl TaskCommand {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        match &self.verb {
            TaskVerb::Queue(queue) => queue.run(remote, out),
            TaskVerb::List(list) => list.run(remote, out),
            TaskVerb::Show(show) => show.run(remote, out),
            TaskVerb::Tree(tree) => tree.run(remote, out),
            TaskVerb::Write(write) => write.run(remote, out),
            TaskVerb::Read(read) => read.run(remote, out),
            TaskVerb::Port(port) => port.run(remote, out),
            TaskVerb::Connect(connect) => connect.run(remote, out),
            TaskVerb::State(state) => state.run(remote, out),
            TaskVerb::Run(run) => run.run(remote, out),
            TaskVerb::Terminate(terminate) => terminate.run(remote, out),
            TaskVerb::Delete(delete) => delete.run(remote, out),
            TaskVerb::Alias(alias) => alias.run(remote, out),
            TaskVerb::Adopt(adopt) => adopt.run(remote, out),
            TaskVerb::Disown(disown) => disown.run(remote, out),
        }
    }
}

/// Parses a JSON value of an argument or option.
pub(super) fn json_value(flag: &str, text: &str) -> Result<JsonText, CliError> {
    JsonText::parse(text).map_err(|error| {
        let hint = "write a JSON value; a text needs double quotes inside of single ones: '\"hello\"'";
        CliError::usage(format!("{flag}: {}", error.message), hint)
    })
}

/// Splits `NAME=JSON`.
pub(super) fn named_value(flag: &str, text: &str) -> Result<(String, JsonText), CliError> {
    let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        let message = format!("{flag}: `{}` has no name and `=`", shortened(text));
        return Err(CliError::usage(message, "write NAME=JSON, such as limit=5"));
    };
    Ok((name.to_owned(), json_value(flag, value)?))
}

/// The direction of a port that a flag selects.
pub(super) const fn direction(is_out: bool) -> PortDirection {
    if is_out { PortDirection::Out } else { PortDirection::In }
}

/// Prints a task after a change: as a line, or in detail for programs.
pub(super) fn print_changed(
    detail: &TaskDetail,
    line: &str,
    output: OutputFormat,
    out: &mut dyn Write,
) -> Result<ExitStatus, CliError> {
    match output.encoding() {
        Some(encoding) => encoding.write(detail, out)?,
        None => render::line(line, out)?,
    }
    Ok(ExitStatus::Done)
}
