//! `cronhold watch`: prints events as they happen.

use std::io::Write;

use clap::Args;
use cronhold_api::client::FeedEvent;

use crate::remote::RemoteDaemon;
use crate::render::watch::WatchedEvent;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus, follow};

/// Show events as they happen, until Ctrl-C
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold watch
  cronhold watch backup
  cronhold watch -o json | jq .

If the connection to the daemon is lost, the command reconnects and continues.")]
pub(crate) struct WatchArgs {
    /// Job to watch [default: everything]
    #[arg(value_name = "JOB")]
    job: Option<String>,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl WatchArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        self.shown.clock(remote.session)?;
        match &self.job {
            Some(job) => remote.client.job(job).map(|_| ()).map_err(|error| remote.failure_about(job, error))?,
            None => remote.client.nodes().map(|_| ()).map_err(|error| remote.failure(error))?,
        }
        render::watch::begins(self.job.as_deref(), remote.session.progress, err)?;
        (remote.session.end_with_reader)();
        let mut last = None;
        follow::ignore_broken_pipe(follow::with_reconnect(remote, err, |remote| self.listen(&mut last, remote, out)))
    }

    /// Shows events until the connection ends.
    fn listen(
        &self,
        last: &mut Option<String>,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let failed = |error| remote.failure(error);
        let mut events = remote.client.events(last.clone()).map_err(failed)?;
        while let Some(event) = events.next_here().map_err(failed)? {
            if !event.id.is_empty() {
                *last = Some(event.id.clone());
            }
            self.show(&event, remote, out)?;
        }
        Err(CliError::Unreachable { message: "the daemon closed the connection".to_owned(), hint: None })
    }

    fn show(&self, event: &FeedEvent, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<(), CliError> {
        let watched = WatchedEvent::read(event);
        if self.job.as_deref().is_some_and(|job| watched.job().is_some_and(|about| about != job)) {
            return Ok(());
        }
        match self.shown.encoding() {
            Some(encoding) => encoding.write_item(&render::watch::for_programs(event), out)?,
            None => watched.line(&self.shown.clock(remote.session)?, remote.session.colours, out)?,
        }
        Ok(out.flush()?)
    }
}
