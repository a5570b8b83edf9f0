//! Staying with something that lasts: a run until its end, or the feed. The daemon may go away and come back meanwhile,
//! also at another address; programs go on then, and so does whoever follows them.

use std::io::{self, ErrorKind, Write};
use std::time::Duration;

use cronhold_api::client::{CallError, Client, RunFilter};
use cronhold_api::{Code, Run};
use cronhold_core::{RunId, State};

use crate::remote::Remote;
use crate::{Exit, Failure, render};

/// How often a daemon that went away is looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How often it is looked for at most: for an hour.
const LOOKS_MAX: u32 = 3_600;
/// What a process exits with that someone interrupted: 128 and the number of the signal.
const INTERRUPTED: i32 = 130;

/// States of runs that have not started.
pub(crate) const WAITING: &[State] = &[State::Scheduled, State::Waiting];
/// States of runs that have a program.
pub(crate) const RUNNING: &[State] = &[State::Starting, State::Running, State::Stopping];

/// Does something that lasts, and goes on with it each time that the daemon was away. The daemon must have answered
/// before: that there is none at all is for whoever asked first to say.
pub(crate) fn lasting<T>(
    remote: &Remote<'_>,
    err: &mut dyn Write,
    mut work: impl FnMut(&Remote<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut done = work(remote);
    while let Err(Failure::Unreachable { message, .. }) = &done {
        render::watch::away(message, err)?;
        let back = find_again(remote)?;
        render::watch::back(err)?;
        done = work(&back);
    }
    done
}

/// Waits until a daemon answers.
fn find_again<'a>(remote: &Remote<'a>) -> Result<Remote<'a>, Failure> {
    let mut looks = 0;
    loop {
        remote.client.rest(LOOK_AGAIN);
        looks += 1;
        let found = Remote::find(remote.session);
        let answered = found.and_then(|found| match found.client.nodes() {
            Ok(_) => Ok(found),
            Err(error) => Err(found.failure(error)),
        });
        match answered {
            Err(Failure::Unreachable { .. }) if looks < LOOKS_MAX => {}
            other => return other,
        }
    }
}

/// Passes on what a run writes, beginning with byte `from`, until the run is over. `id` is the run's id, so that it is
/// not another run after a while.
pub(crate) fn output(
    remote: &Remote<'_>,
    id: &str,
    mut from: u64,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    lasting(remote, err, |remote| {
        let pieces = remote.client.output(id, from, true).map_err(|error| remote.failure(error))?;
        for piece in pieces {
            let piece = piece.map_err(|error| remote.failure(error))?;
            out.write_all(&piece)?;
            // Whoever follows wants to see it when it comes.
            out.flush()?;
            from = from.saturating_add(piece.len() as u64);
        }
        Ok(())
    })
}

/// Follows a run to its end: what it writes goes to `out`, how it ended to `err`.
pub(crate) fn to_end(
    remote: &Remote<'_>,
    run: &Run,
    shown: &render::Shown,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failure> {
    let name = render::run::name(run);
    Client::on_interrupt(move || {
        render::run::left_running(&name);
        std::process::exit(INTERRUPTED);
    });
    let finished = match shown.encoding() {
        // Programs get the run, and nothing else is mixed into that.
        Some(_) => finished(remote, &run.id, err)?,
        None => {
            output(remote, &run.id, 0, &mut Heedless(out), err)?;
            finished(remote, &run.id, err)?
        }
    };
    match shown.encoding() {
        Some(encoding) => encoding.write(&finished, out)?,
        None => render::watch::ended(&finished, &shown.wall(remote.session)?, remote.session.colours, err)?,
    }
    Ok(verdict(&finished))
}

/// Writes on when the reader has left: whoever waits for a run wants to know how it ends in any case.
struct Heedless<'a>(&'a mut dyn Write);

impl Write for Heedless<'_> {
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

/// The end of something that is shown as it comes: that its reader has left is a good reason to end.
pub(crate) fn until_left(shown: Result<Exit, Failure>) -> Result<Exit, Failure> {
    match shown {
        Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::Done),
        other => other,
    }
}

/// Waits until a run is over.
pub(crate) fn finished(remote: &Remote<'_>, id: &str, err: &mut dyn Write) -> Result<Run, Failure> {
    lasting(remote, err, |remote| remote.client.finished(id).map_err(|error| remote.failure(error)))
}

/// What a process exits with that waited for a run.
pub(crate) fn verdict(run: &Run) -> Exit {
    if run.state == State::Success { Exit::Done } else { Exit::Refused }
}

/// Whether a run that was asked for can still run: one that was skipped at once never will.
pub(crate) fn acceptance(run: &Run) -> Exit {
    if run.state == State::Skipped { Exit::Refused } else { Exit::Done }
}

/// The run that a name stands for now, and what is wrong when there is none.
pub(crate) fn named(remote: &Remote<'_>, name: &str) -> Result<Run, Failure> {
    remote.client.run(name).map(|detail| detail.run).map_err(|error| remote.failure_about(name, error))
}

/// What to say when something cannot be done with a run. Whoever names a run by its job means the latest, and may not
/// know that it is another one that can be meant: the one that is still there is named.
pub(crate) fn refused(remote: &Remote<'_>, name: &str, able: &[State], error: CallError) -> Failure {
    let is_state = error.problem().is_some_and(|problem| problem.code == Code::Conflict);
    let failure = remote.failure_about(name, error);
    let Failure::Refused { message, hint } = failure else { return failure };
    if !is_state || is_run(name) {
        return Failure::Refused { message, hint };
    }
    let filter = RunFilter { job: Some(name.to_owned()), states: able.to_vec(), since: None };
    let latest = remote.client.run(name).ok().map(|detail| detail.run.id);
    let other = remote.client.run_page(&filter, None, 1).ok().and_then(|page| page.runs.into_iter().next());
    let other = other.filter(|run| latest.as_ref() != Some(&run.id));
    let meant = other.map(|run| format!("did you mean `{}`, which is {}?", render::run::name(&run), run.state));
    Failure::Refused { message: format!("the latest run of `{name}`: {message}"), hint: meant.or(hint) }
}

/// Whether a name is that of one run, and not of a job.
pub(crate) fn is_run(name: &str) -> bool {
    name.contains('#') || RunId::parse(name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe whose reader has left.
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
    fn a_reader_who_has_left_ends_what_is_shown_and_not_what_is_waited_for() {
        assert!(matches!(until_left(Left.flush().map(|()| Exit::Refused).map_err(Failure::Output)), Ok(Exit::Done)));
        assert!(until_left(Err(Failure::Output(ErrorKind::StorageFull.into()))).is_err());
        let mut left = Left;
        let mut heedless = Heedless(&mut left);
        heedless.write_all(b"more").expect("dropped");
        heedless.flush().expect("dropped");
    }

    #[test]
    fn runs_and_jobs_are_told_apart_by_their_names() {
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
