//! `cronhold del`: jobs that are to be no more.

use std::io::Write;

use clap::Args;
use serde_json::json;

use crate::remote::Remote;
use crate::render::{self, Format};
use crate::{Exit, Failure, complain};

/// Remove jobs
#[derive(Debug, Args)]
#[command(after_help = "\
A job that is removed starts nothing any more. Runs that are there stay, and so does what runs; `cronhold
stop` ends it. Jobs that come from a directory of job files are removed there.

Example:
  cronhold del hello reports/prices")]
pub(crate) struct Del {
    /// Ids of the jobs
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// How to show what was removed
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

impl Del {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Failure> {
        let encoding = self.output.encoding();
        let (mut exit, mut removed) = (Exit::Done, Vec::new());
        for name in &self.names {
            match remote.client.delete_job(name) {
                Ok(()) => {
                    removed.push(name);
                    if encoding.is_none() {
                        render::line(&format!("removed `{name}`"), out)?;
                    }
                }
                // One that is not there does not keep the others.
                Err(error) => match remote.failure_about(name, error) {
                    away @ Failure::Unreachable { .. } => return Err(away),
                    failure => {
                        // What was removed is said before what was not.
                        out.flush()?;
                        exit = complain(&failure, remote.session.colours, err);
                    }
                },
            }
        }
        if let Some(encoding) = encoding {
            encoding.write(&json!({ "removed": removed }), out)?;
        }
        Ok(exit)
    }
}
