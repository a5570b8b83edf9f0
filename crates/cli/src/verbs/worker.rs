//! `cronhold worker`: runs an executable as a worker of tasks, and tries one. The binary starts the executable, because
//! only it starts processes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use cronhold_core::task::{ClassConfig, ClassName, JsonText, PortName, QueueName};
use cronhold_schedule::Span;

use super::plugin::TrialPrinter;
use crate::render::OutputFormat;
use crate::{CliError, LogArgs};

/// The shortest lease. Heartbeats are sent three times as often.
const LEASE_MIN: Span = Span::from_millis(100);
/// The longest lease.
const LEASE_MAX: Span = Span::from_secs(24 * 3_600);

/// Run an executable as a worker of tasks
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
The executable gets steps of tasks as JSON lines on its standard input, and writes what they do to its
standard output. With --each, it is started for each step; with --filter, it turns lines into lines.
docs/guide/workers.md describes the messages; `cronhold worker check -- CMD` tries an executable.

SIGTERM and SIGINT stop the worker when its steps have ended, and a second one gives them back at once.
SIGTSTP and SIGUSR1 begin no further steps. With --store, the worker uses a shared store without a daemon.

If no option and no variable of Cronhold names a daemon or a store, $SIDEJOB_URL or else
$SIDEJOB_HOST names the Redis of the tasks.

Examples:
  cronhold worker --queue math -- ./worker.py
  cronhold worker --queue math --concurrency 4 --class Double --filter in out -- jq -c --unbuffered '. * 2'
  cronhold worker --queue mail --class Send --each -- ./send.sh"
)]
pub struct WorkerCommand {
    /// Operation
    #[command(subcommand)]
    pub verb: Option<WorkerVerb>,
    /// Arguments of a worker that runs
    #[command(flatten)]
    pub run: WorkerRunArgs,
}

/// Operations on workers.
#[derive(Debug, Subcommand)]
pub enum WorkerVerb {
    /// Try an executable as a worker, and report what is right and wrong with its messages
    Check(WorkerCheckArgs),
}

/// How an executable is used.
#[derive(Debug, Args)]
pub struct WorkerUse {
    /// Class to perform; repeatable [default: all that the executable or --classes names]
    #[arg(long = "class", value_name = "NAME")]
    pub classes: Vec<String>,
    /// JSON file with classes: an object of names with configurations
    #[arg(long = "classes", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Start the executable for each step
    #[arg(long, conflicts_with = "filter")]
    pub each: bool,
    /// Pass each item of port IN as a line, and write each line of the reply to port OUT
    #[arg(long, num_args = 2, value_names = ["IN", "OUT"])]
    pub filter: Vec<String>,
}

/// Arguments of `cronhold worker`.
#[derive(Debug, Args)]
pub struct WorkerRunArgs {
    /// Queue whose tasks are performed
    #[arg(long, value_name = "NAME", required = true)]
    queue: Option<String>,
    /// Steps that are made at once
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub concurrency: u32,
    /// Time after which another worker repeats a step, if this one is lost
    #[arg(long, value_name = "SPAN", default_value = "1m")]
    lease: String,
    /// How the executable is used
    #[command(flatten)]
    pub used: WorkerUse,
    /// What is logged
    #[command(flatten)]
    pub log: LogArgs,
    /// Executable and its arguments, after `--`
    #[arg(value_name = "CMD", last = true, required = true)]
    pub command: Vec<OsString>,
}

/// Arguments of `cronhold worker check`.
#[derive(Debug, Args)]
#[command(after_help = "\
The executable gets `hello` and a step of a task of each of its classes, which is kept in memory. All
lines of both sides are shown. Then it has to ignore a `cancel` for an unknown step, and to end after
`quiet` and the end of its input. Exits with 1 if something is wrong.

Examples:
  cronhold worker check -- ./worker.py
  cronhold worker check --in in=1 --in in=2 --in ready=true --class Sum -- ./worker.py
  cronhold worker check --class Double --filter in out --in in=21 -- jq -c --unbuffered '. * 2'")]
pub struct WorkerCheckArgs {
    /// How the executable is used
    #[command(flatten)]
    pub used: WorkerUse,
    /// Args of the sample tasks, a JSON list
    #[arg(long, value_name = "JSON", default_value = "[]")]
    args: String,
    /// Value in an in port of the sample tasks; repeatable
    #[arg(long = "in", value_name = "PORT=JSON")]
    values: Vec<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
    /// Executable and its arguments, after `--`
    #[arg(value_name = "CMD", last = true, required = true)]
    pub command: Vec<OsString>,
}

impl WorkerUse {
    /// The classes that are named.
    pub fn class_names(&self) -> Result<Vec<ClassName>, CliError> {
        let parse = |name: &String| ClassName::parse(name).map_err(|error| CliError::flag("--class", error));
        self.classes.iter().map(parse).collect()
    }

    /// The configurations of classes in the file.
    pub fn configs(&self) -> Result<BTreeMap<ClassName, JsonText>, CliError> {
        let Some(file) = &self.file else { return Ok(BTreeMap::new()) };
        let invalid = |error: String| {
            let hint =
                r#"write an object of classes, such as {"Sum": {"inports": {"in": {}}, "outports": {"sum": {}}}}"#;
            CliError::usage(format!("--classes: {}: {error}", file.display()), hint)
        };
        let text = fs::read_to_string(file).map_err(|error| invalid(error.to_string()))?;
        let configs: BTreeMap<ClassName, JsonText> =
            serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        for (class, config) in &configs {
            ClassConfig::parse(config.as_str()).map_err(|error| invalid(format!("class {class}: {error}")))?;
        }
        Ok(configs)
    }

    /// The ports of a filter; `None` without one.
    pub fn filter_ports(&self) -> Result<Option<(PortName, PortName)>, CliError> {
        let parse = |name: &str| PortName::parse(name).map_err(|error| CliError::flag("--filter", error));
        match self.filter.as_slice() {
            [from, to] => Ok(Some((parse(from)?, parse(to)?))),
            _ => Ok(None),
        }
    }
}

impl WorkerRunArgs {
    /// The queue.
    pub fn queue(&self) -> Result<QueueName, CliError> {
        // Clap requires it unless a subcommand is given.
        QueueName::parse(self.queue.as_deref().unwrap_or_default()).map_err(|error| CliError::flag("--queue", error))
    }

    /// How long a step is held without a heartbeat.
    pub fn lease(&self) -> Result<Span, CliError> {
        let lease = Span::parse(&self.lease).map_err(|error| CliError::flag("--lease", error))?;
        match (LEASE_MIN..=LEASE_MAX).contains(&lease) {
            true => Ok(lease),
            false => {
                let message = format!("--lease: `{lease}` is not from {LEASE_MIN} to {LEASE_MAX}");
                Err(CliError::usage(message, "write a span such as 30s"))
            }
        }
    }
}

impl WorkerCheckArgs {
    /// The args of the sample tasks.
    pub fn args(&self) -> Result<JsonText, CliError> {
        let args = JsonText::parse(&self.args).map_err(|error| CliError::flag("--args", error))?;
        match args.as_str().starts_with('[') {
            true => Ok(args),
            false => Err(CliError::usage("--args: it is not a list", "write a JSON list, such as [6]")),
        }
    }

    /// The values for the in ports, in order.
    pub fn values(&self) -> Result<Vec<(PortName, JsonText)>, CliError> {
        let parse = |word: &String| {
            let (port, value) = word.split_once('=').ok_or_else(|| {
                CliError::usage(format!("--in: `{word}` is not PORT=JSON"), "write PORT=JSON, such as in=3")
            })?;
            let port = PortName::parse(port).map_err(|error| CliError::flag("--in", error))?;
            Ok((port, JsonText::parse(value).map_err(|error| CliError::flag("--in", error))?))
        };
        self.values.iter().map(parse).collect()
    }

    /// Prints events to `out` in the selected format.
    pub fn printer<'a>(&self, out: &'a mut dyn Write) -> TrialPrinter<'a> {
        TrialPrinter::new(out, self.output.encoding())
    }
}
