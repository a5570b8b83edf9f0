//! `cronhold nodes`: the nodes of the store.

use std::io::Write;

use clap::Args;

use crate::remote::Remote;
use crate::render::{self, Shown};
use crate::{Exit, Failure};

/// List the nodes that run jobs
#[derive(Debug, Args)]
pub(crate) struct Nodes {
    #[command(flatten)]
    shown: Shown,
}

impl Nodes {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, _: &mut dyn Write) -> Result<Exit, Failure> {
        let wall = self.shown.wall(remote.session)?;
        let nodes = remote.client.nodes().map_err(|error| remote.failure(error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&nodes, out)?,
            None => render::nodes::table(&nodes, &wall, remote.session.colours, out)?,
        }
        Ok(Exit::Done)
    }
}
