//! `cronhold task queue`: creates a task.

use std::collections::BTreeMap;
use std::io::Write;

use clap::Args;
use cronhold_api::{TaskBody, TaskPortOptions, TaskReference};
use cronhold_schedule::Zone;

use super::{json_value, named_value};
use crate::remote::RemoteDaemon;
use crate::render::{self, LocalTimeFormat, OutputFormat};
use crate::time_input::{self, Direction};
use crate::{CliError, ExitStatus};

/// Create a task, and print its id
#[derive(Debug, Args)]
#[command(after_help = "\
A worker must have registered the class for the queue; `cronhold queues` lists the registered
classes. The values of --in are in the ports before the first step begins.

Examples:
  cronhold task queue core Sum --in in=1 --in in=2 --in ready=true
  cronhold task queue core Load '\"eu\"' 3 --alias load-eu
  cronhold task queue core Sum --parent load-eu --name total --at 18:30
  cronhold task queue core Map --key order-4711")]
pub(crate) struct TaskQueueArgs {
    /// Queue
    #[arg(value_name = "QUEUE")]
    queue: String,
    /// Class
    #[arg(value_name = "CLASS")]
    class: String,
    /// Args as JSON values
    #[arg(value_name = "ARG-JSON", allow_negative_numbers = true)]
    args: Vec<String>,
    /// Value that is written to an in port; repeatable
    #[arg(long = "in", value_name = "PORT=JSON")]
    input: Vec<String>,
    /// In port beside those of the class, or `*` for ports that are created when they are first used; repeatable
    #[arg(long = "inport", value_name = "PORT")]
    inports: Vec<String>,
    /// Out port beside those of the class, or `*`; repeatable
    #[arg(long = "outport", value_name = "PORT")]
    outports: Vec<String>,
    /// Parent: its id or an alias
    #[arg(long, value_name = "TASK", requires = "name")]
    parent: Option<String>,
    /// Name among the children of the parent
    #[arg(long, value_name = "NAME", requires = "parent")]
    name: Option<String>,
    /// When the first step is due, in UTC: 2h, 18:30, tomorrow or 2026-11-01T02:00:00Z [default: now]
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Alias, which begins with a letter and must not be in use
    #[arg(long, value_name = "ALIAS")]
    alias: Option<String>,
    /// Key of the request: within 24 hours, the same key creates only one task
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl TaskQueueArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let created = remote.client.create_task(&self.body(remote)?, self.key.as_deref());
        let created = created.map_err(|error| remote.failure(error))?;
        match self.output.encoding() {
            Some(encoding) => encoding.write(&created, out)?,
            None => render::line(&created.id.to_string(), out)?,
        }
        Ok(ExitStatus::Done)
    }

    fn body(&self, remote: &RemoteDaemon<'_>) -> Result<TaskBody, CliError> {
        let args = self.args.iter().map(|arg| json_value("ARG-JSON", arg)).collect::<Result<Vec<_>, _>>()?;
        let mut input: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for text in &self.input {
            let (port, value) = named_value("--in", text)?;
            input.entry(port).or_default().push(value);
        }
        let ports = |names: &[String]| names.iter().map(|name| (name.clone(), TaskPortOptions::default())).collect();
        let at = self.at.as_deref().map(|at| time("--at", at, remote)).transpose()?;
        Ok(TaskBody {
            args: Some(args).filter(|args| !args.is_empty()),
            parent: self.parent.clone().map(TaskReference::Text),
            name: self.name.clone(),
            at,
            alias: self.alias.clone(),
            inports: ports(&self.inports),
            outports: ports(&self.outports),
            input,
            ..TaskBody::new(&self.queue, &self.class)
        })
    }
}

/// A time in the future.
pub(super) fn time(flag: &str, text: &str, remote: &RemoteDaemon<'_>) -> Result<cronhold_schedule::Instant, CliError> {
    let clock = LocalTimeFormat { zone: Zone::utc(), now: remote.session.now };
    time_input::read(text, Direction::Ahead, &clock).map_err(|error| CliError::flag(flag, error))
}
