//! `cronhold pools`: the limits that several jobs share.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus};

/// List the pools that limit the runs of several jobs
#[derive(Debug, Args)]
pub(crate) struct PoolsArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl PoolsArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let pools = remote.client.pools().map_err(|error| remote.failure(error))?;
        match self.output.encoding() {
            Some(encoding) => encoding.write(&pools, out)?,
            None => render::pools::table(&pools, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }
}
