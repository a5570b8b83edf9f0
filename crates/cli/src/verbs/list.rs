//! `cronhold list`: jobs, when they are due, and what became of them last.

use std::io::Write;

use clap::Args;
use cronhold_api::client::JobFilter;

use crate::remote::Remote;
use crate::render::{self, Shown};
use crate::{Exit, Failure};

/// Show jobs, when they are due next, and how they went last
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold list
  cronhold list 'reports/*' --label nightly
  cronhold list -o json")]
pub(crate) struct List {
    /// Only jobs whose id looks so; `*` stands for anything, `?` for one sign
    #[arg(value_name = "PATTERN")]
    pattern: Option<String>,
    /// Only jobs with this label
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    #[command(flatten)]
    shown: Shown,
}

impl List {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Failure> {
        let wall = self.shown.wall(remote.session)?;
        let filter = JobFilter { pattern: self.pattern.clone(), label: self.label.clone() };
        let list = remote.client.jobs(&filter).map_err(|error| remote.failure(error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&list.jobs, out)?,
            None => render::jobs::table(&list, self.is_filtered(), &wall, remote.session.colours, out, err)?,
        }
        render::jobs::unreadable(&list.unreadable, err)?;
        Ok(Exit::Done)
    }

    fn is_filtered(&self) -> bool {
        self.pattern.is_some() || self.label.is_some()
    }
}
