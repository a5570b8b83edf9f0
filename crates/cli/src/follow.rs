//! Follows a run to its end, or the event feed, and reconnects if the daemon restarts, even at another address.

use std::io::{self, ErrorKind, Write};
use std::time::Duration;

use cronhold_api::client::{CallError, DaemonClient, RunFilter};
use cronhold_api::{ProblemCode, RunSummary};
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

/// Follows a run to its end: its output goes to `out`, its result to `err`.
pub(crate) fn to_end(
    remote: &RemoteDaemon<'_>,
    run: &RunSummary,
    shown: &render::TimeDisplayFlags,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<ExitStatus, CliError> {
    let name = render::run::name(run);
    DaemonClient::on_interrupt(move || {
        render::run::left_running(&name);
        std::process::exit(INTERRUPTED);
    });
    let finished = match shown.encoding() {
        // With JSON or YAML, standard output contains only the run.
        Some(_) => finished(remote, &run.id, err)?,
        None => {
            output(remote, &run.id, 0, &mut IgnoreBrokenPipe(out), err)?;
            finished(remote, &run.id, err)?
        }
    };
    match shown.encoding() {
        Some(encoding) => encoding.write(&finished, out)?,
        None => render::watch::ended(&finished, &shown.clock(remote.session)?, remote.session.colours, err)?,
    }
    Ok(exit_of_finished(&finished))
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

/// The error when a run does not allow an operation. If the run was named by its job, the hint suggests another run of
/// the job that is in one of the states `able`.
pub(crate) fn refused(remote: &RemoteDaemon<'_>, name: &str, able: &[State], error: CallError) -> CliError {
    let is_state = error.problem().is_some_and(|problem| problem.code == ProblemCode::Conflict);
    let failure = remote.failure_about(name, error);
    let CliError::Refused { message, hint } = failure else { return failure };
    if !is_state || is_run(name) {
        return CliError::Refused { message, hint };
    }
    let filter = RunFilter { job: Some(name.to_owned()), states: able.to_vec(), since: None };
    let latest = remote.client.run(name).ok().map(|detail| detail.run.id);
    let other = remote.client.run_page(&filter, None, 1).ok().and_then(|page| page.runs.into_iter().next());
    let other = other.filter(|run| latest.as_ref() != Some(&run.id));
    let meant = other.map(|run| format!("did you mean `{}`, which is {}?", render::run::name(&run), run.state));
    CliError::Refused { message: format!("the latest run of `{name}`: {message}"), hint: meant.or(hint) }
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
