//! Follows a run to its end, or the event feed, and reconnects if the daemon restarts, even at another address.

use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cronhold_api::client::{CallError, DaemonClient, RunFilter};
use cronhold_api::{LIMIT, ProblemCode, RunSummary};
use cronhold_core::{RunId, State};

use crate::remote::RemoteDaemon;
use crate::{CliError, ExitStatus, render};

/// Interval between attempts to reconnect.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Maximum number of attempts: one hour.
const LOOKS_MAX: u32 = 3_600;
/// Exit code after Ctrl-C: 128 plus the signal number.
const INTERRUPTED: i32 = 130;

/// States of a run that has not started.
pub(crate) const WAITING: &[State] = &[State::Scheduled, State::Waiting];
/// States of a run that has a program.
pub(crate) const RUNNING: &[State] = &[State::Starting, State::Running, State::Stopping];

/// Runs `work`, and runs it again after each reconnect if the daemon becomes unreachable. The caller must have reached
/// the daemon once, because this function does not report that there is none.
pub(crate) fn with_reconnect<T>(
    remote: &RemoteDaemon<'_>,
    err: &mut dyn Write,
    mut work: impl FnMut(&RemoteDaemon<'_>) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let mut done = work(remote);
    while let Err(CliError::Unreachable { message, .. }) = &done {
        render::watch::disconnected(message, err)?;
        let back = reconnect(remote)?;
        render::watch::reconnected(err)?;
        done = work(&back);
    }
    done
}

/// Waits until the daemon responds.
fn reconnect<'a>(remote: &RemoteDaemon<'a>) -> Result<RemoteDaemon<'a>, CliError> {
    let mut looks = 0;
    loop {
        remote.client.rest(LOOK_AGAIN);
        looks += 1;
        let found = RemoteDaemon::find(remote.session);
        let answered = found.and_then(|found| match found.client.nodes() {
            Ok(_) => Ok(found),
            Err(error) => Err(found.failure(error)),
        });
        match answered {
            Err(CliError::Unreachable { .. }) if looks < LOOKS_MAX => {}
            other => return other,
        }
    }
}

/// Copies the output of a run from byte `from` until the run ends. `id` is a run id and not a job, whose latest run may
/// change.
pub(crate) fn output(
    remote: &RemoteDaemon<'_>,
    id: &str,
    mut from: u64,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), CliError> {
    with_reconnect(remote, err, |remote| {
        let pieces = remote.client.output(id, from, true).map_err(|error| remote.failure(error))?;
        for piece in pieces {
            let piece = piece.map_err(|error| remote.failure(error))?;
            out.write_all(&piece)?;
            // Show output as soon as it arrives.
            out.flush()?;
            from = from.saturating_add(piece.len() as u64);
        }
        Ok(())
    })
}

/// Follows a run to its end, and then each retry to the last one: their output goes to `out`, their results to `err`.
pub(crate) fn to_end(
    remote: &RemoteDaemon<'_>,
    run: &RunSummary,
    shown: &render::TimeDisplayFlags,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<ExitStatus, CliError> {
    // Ctrl-C names the attempt that is followed then.
    let current = Arc::new(Mutex::new(render::run::name(run)));
    let followed = Arc::clone(&current);
    DaemonClient::on_interrupt(move || {
        render::run::left_running(&lock(&followed));
        std::process::exit(INTERRUPTED);
    });
    let mut id = run.id.clone();
    loop {
        // With JSON or YAML, standard output contains only the last attempt.
        if shown.encoding().is_none() {
            output(remote, &id, 0, &mut IgnoreBrokenPipe(out), err)?;
        }
        let finished = finished(remote, &id, err)?;
        if let Some(retry) = retry_of(remote, &finished, err)? {
            let clock = shown.clock(remote.session)?;
            render::watch::retried(&finished, &retry, &clock, remote.session.colours, err)?;
            *lock(&current) = render::run::name(&retry);
            id = retry.id;
            continue;
        }
        match shown.encoding() {
            Some(encoding) => encoding.write(&finished, out)?,
            None => render::watch::ended(&finished, &shown.clock(remote.session)?, remote.session.colours, err)?,
        }
        return Ok(exit_of_finished(&finished));
    }
}

/// The run that retries a finished run; `None` if none does, or if it was deleted.
fn retry_of(remote: &RemoteDaemon<'_>, run: &RunSummary, err: &mut dyn Write) -> Result<Option<RunSummary>, CliError> {
    let Some(retry) = &run.retried_by else { return Ok(None) };
    with_reconnect(remote, err, |remote| match remote.client.run(retry) {
        Ok(detail) => Ok(Some(detail.run)),
        Err(error) if error.problem().is_some_and(|problem| problem.code == ProblemCode::NotFound) => Ok(None),
        Err(error) => Err(remote.failure(error)),
    })
}

fn lock(name: &Mutex<String>) -> MutexGuard<'_, String> {
    name.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A writer that ignores a broken pipe, because the exit code of `--wait` matters even without a reader.
struct IgnoreBrokenPipe<'a>(&'a mut dyn Write);

impl Write for IgnoreBrokenPipe<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }
}

/// Treats a broken pipe as success, for commands that print a stream.
pub(crate) fn ignore_broken_pipe(shown: Result<ExitStatus, CliError>) -> Result<ExitStatus, CliError> {
    match shown {
        Err(CliError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitStatus::Done),
        other => other,
    }
}

/// Waits until a run has finished.
pub(crate) fn finished(remote: &RemoteDaemon<'_>, id: &str, err: &mut dyn Write) -> Result<RunSummary, CliError> {
    with_reconnect(remote, err, |remote| remote.client.finished(id).map_err(|error| remote.failure(error)))
}

/// The exit status of a command that waited for a run.
pub(crate) fn exit_of_finished(run: &RunSummary) -> ExitStatus {
    if run.state == State::Success { ExitStatus::Done } else { ExitStatus::Refused }
}

/// The exit status of a command that created a run: a run that was skipped immediately counts as refused.
pub(crate) fn exit_of_created(run: &RunSummary) -> ExitStatus {
    if run.state == State::Skipped { ExitStatus::Refused } else { ExitStatus::Done }
}

/// Loads the run called `name`.
pub(crate) fn named(remote: &RemoteDaemon<'_>, name: &str) -> Result<RunSummary, CliError> {
    remote.client.run(name).map(|detail| detail.run).map_err(|error| remote.failure_about(name, error))
}

/// The error when a run does not allow an operation. If the run was named by its job, the message says which run was
/// taken.
pub(crate) fn refused(remote: &RemoteDaemon<'_>, name: &str, error: CallError) -> CliError {
    let is_state = error.problem().is_some_and(|problem| problem.code == ProblemCode::Conflict);
    let failure = remote.failure_about(name, error);
    let CliError::Refused { message, hint } = failure else { return failure };
    let taken = Some(name).filter(|name| is_state && !is_run(name)).and_then(|name| remote.client.run(name).ok());
    match taken {
        Some(detail) => CliError::Refused { message: format!("{}: {message}", render::run::name(&detail.run)), hint },
        None => CliError::Refused { message, hint },
    }
}

/// Prints which run of a job was taken, if several of them are running.
pub(crate) fn name_taken(
    remote: &RemoteDaemon<'_>,
    name: &str,
    taken: &RunSummary,
    err: &mut dyn Write,
) -> Result<(), CliError> {
    if is_run(name) || !RUNNING.contains(&taken.state) {
        return Ok(());
    }
    let filter = RunFilter { job: Some(taken.job.clone()), states: RUNNING.to_vec(), since: None };
    let page = remote.client.run_page(&filter, None, LIMIT).map_err(|error| remote.failure(error))?;
    let others: Vec<String> = page.runs.iter().filter(|run| run.id != taken.id).map(render::run::name).collect();
    if !others.is_empty() {
        render::watch::taken(taken, &others, err)?;
    }
    Ok(())
}

/// Whether a name is that of a run and not of a job.
pub(crate) fn is_run(name: &str) -> bool {
    name.contains('#') || RunId::parse(name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe without a reader.
    struct Left;

    impl Write for Left {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn broken_pipe_ends_stream_but_not_wait() {
        assert!(matches!(
            ignore_broken_pipe(Left.flush().map(|()| ExitStatus::Refused).map_err(CliError::Output)),
            Ok(ExitStatus::Done)
        ));
        assert!(ignore_broken_pipe(Err(CliError::Output(ErrorKind::StorageFull.into()))).is_err());
        let mut left = Left;
        let mut heedless = IgnoreBrokenPipe(&mut left);
        heedless.write_all(b"more").expect("dropped");
        heedless.flush().expect("dropped");
    }

    #[test]
    fn run_names_are_distinguished_from_job_ids() {
        for (name, expected) in [
            ("backup", false),
            ("reports/prices", false),
            ("backup#42", true),
            ("019a0000000070008000000000000042", true),
            ("deadbeef", false),
        ] {
            assert_eq!(is_run(name), expected, "{name}");
        }
    }
}
