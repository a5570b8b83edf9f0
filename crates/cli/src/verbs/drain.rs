//! `cronhold drain`: a node starts nothing any more, so that it can be stopped without anybody missing it.

use std::io::Write;

use clap::Args;

use crate::remote::Remote;
use crate::render::{self, Format, counted};
use crate::{Exit, Failure};

/// Let a node start nothing any more, or start things again
#[derive(Debug, Args)]
#[command(after_help = "\
What the node runs goes on; what is due is left to other nodes. `cronhold nodes` shows when it has no
runs any more. A node that is started again does not drain.

Where a node is alone nobody takes over: what is due meanwhile is skipped after a minute.

Examples:
  cronhold drain                  the node that answers
  cronhold drain db-2
  cronhold drain --undo db-2")]
pub(crate) struct Drain {
    /// Name or id of the node [default: the one that answers]
    #[arg(value_name = "NODE")]
    node: Option<String>,
    /// Let it start things again
    #[arg(long)]
    undo: bool,
    /// How to show it
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

impl Drain {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, _: &mut dyn Write) -> Result<Exit, Failure> {
        let node = match &self.node {
            Some(node) => node.clone(),
            None => answering(remote)?,
        };
        let drained = remote.client.drain(&node, !self.undo).map_err(|error| remote.failure(error))?;
        if let Some(encoding) = self.output.encoding() {
            encoding.write(&drained, out)?;
            return Ok(Exit::Done);
        }
        let name = &drained.node.name;
        let text = match (self.undo, drained.changed) {
            (false, true) => {
                let runs = counted(usize::try_from(drained.node.runs).unwrap_or(usize::MAX), "run");
                format!("`{name}` drains, and has {runs}; `cronhold drain --undo {name}` lets it start things again")
            }
            (false, false) => format!("`{name}` drains already"),
            (true, true) => format!("`{name}` starts things again"),
            (true, false) => format!("`{name}` does not drain"),
        };
        render::line(&text, out)?;
        Ok(Exit::Done)
    }
}

/// The id of the node that answers.
fn answering(remote: &Remote<'_>) -> Result<String, Failure> {
    let nodes = remote.client.nodes().map_err(|error| remote.failure(error))?;
    let this = nodes.into_iter().find(|node| node.is_this).map(|node| node.id);
    this.ok_or_else(|| {
        Failure::refused("no node answers here that could be meant", "name a node; `cronhold nodes` shows all")
    })
}
