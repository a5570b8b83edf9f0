//! `cronhold nodes`: the nodes of the store.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus};

/// List the nodes that run jobs
#[derive(Debug, Args)]
pub(crate) struct NodesArgs {
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl NodesArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let nodes = remote.client.nodes().map_err(|error| remote.failure(error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&nodes, out)?,
            None => render::nodes::table(&nodes, &clock, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }
}
