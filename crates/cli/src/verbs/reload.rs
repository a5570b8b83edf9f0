//! `cronhold reload`: reads the job files anew. The daemon does so by itself when they change; this says what came of it.

use std::io::Write;

use clap::Args;
use cronhold_api::client::JobFilter;

use crate::remote::Remote;
use crate::render::Format;
use crate::{Exit, Failure, render};

/// Read the job files anew, and say what came of it
#[derive(Debug, Args)]
#[command(after_help = "\
The daemon sees by itself that a file has changed; this is for those who do not want to wait, and for
scripts. Exits with 1 when there is a mistake in a file.")]
pub(crate) struct Reload {
    /// How to show it
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

impl Reload {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Failure> {
        let reloaded = remote.client.reload().map_err(|error| remote.failure(error))?;
        match self.output.encoding() {
            Some(encoding) => encoding.write(&reloaded, out)?,
            None => render::line(&reloaded.summary, out)?,
        }
        if reloaded.mistakes > 0 {
            out.flush()?;
            let list = remote.client.jobs(&JobFilter::default()).map_err(|error| remote.failure(error))?;
            render::jobs::mistakes(&list, err)?;
        }
        Ok(if reloaded.mistakes == 0 { Exit::Done } else { Exit::Refused })
    }
}
