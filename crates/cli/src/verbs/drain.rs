//! `cronhold drain`: a node stops starting runs, so that it can be stopped without affecting any.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat, counted};
use crate::{CliError, ExitStatus};

/// Drain a node: it starts nothing new; or undo that
#[derive(Debug, Args)]
#[command(after_help = "\
The node's runs continue, and other nodes start what is due. `cronhold nodes` shows when the node has
no runs left. A restarted node is not draining.

If there is no other node, due occurrences are skipped after one minute.

Examples:
  cronhold drain                  this node
  cronhold drain db-2
  cronhold drain --undo db-2")]
pub(crate) struct DrainArgs {
    /// Name or id of the node [default: the node that answers]
    #[arg(value_name = "NODE")]
    node: Option<String>,
    /// End draining
    #[arg(long)]
    undo: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl DrainArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let node = match &self.node {
            Some(node) => node.clone(),
            None => answering(remote)?,
        };
        let drained = remote.client.drain(&node, !self.undo).map_err(|error| remote.failure(error))?;
        if let Some(encoding) = self.output.encoding() {
            encoding.write(&drained, out)?;
            return Ok(ExitStatus::Done);
        }
        let name = &drained.node.name;
        let text = match (self.undo, drained.changed) {
            (false, true) => {
                let runs = counted(usize::try_from(drained.node.runs).unwrap_or(usize::MAX), "run");
                format!("`{name}` is draining and has {runs}; `cronhold drain --undo {name}` ends it")
            }
            (false, false) => format!("`{name}` is already draining"),
            (true, true) => format!("`{name}` is no longer draining"),
            (true, false) => format!("`{name}` is not draining"),
        };
        render::line(&text, out)?;
        Ok(ExitStatus::Done)
    }
}

/// The id of the node that answers.
fn answering(remote: &RemoteDaemon<'_>) -> Result<String, CliError> {
    let nodes = remote.client.nodes().map_err(|error| remote.failure(error))?;
    let this = nodes.into_iter().find(|node| node.is_this).map(|node| node.id);
    this.ok_or_else(|| {
        CliError::refused("this command does not run on a node", "name a node; `cronhold nodes` lists them")
    })
}
