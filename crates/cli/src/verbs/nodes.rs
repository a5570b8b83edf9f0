//! `cronhold nodes`: the nodes of the store.

use std::io::Write;

use clap::Args;

use crate::remote::Remote;
use crate::render::{self, TimeDisplayFlags};
use crate::{Exit, Failure};

/// List the nodes that run jobs
#[derive(Debug, Args)]
pub(crate) struct NodesArgs {
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl NodesArgs {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, _: &mut dyn Write) -> Result<Exit, Failure> {
        let clock = self.shown.clock(remote.session)?;
        let nodes = remote.client.nodes().map_err(|error| remote.failure(error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&nodes, out)?,
            None => render::nodes::table(&nodes, &clock, remote.session.colours, out)?,
        }
        Ok(Exit::Done)
    }
}
