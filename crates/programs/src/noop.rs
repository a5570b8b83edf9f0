//! Programs that do nothing for a given time. All of them are in one table with a deadline each, so that a run needs
//! neither a task nor a timer of its own. The table takes the time as an argument and never waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cronhold_core::command::{ExitOutcome, ProgramReport};
use cronhold_core::record::{ResolvedProgram, Run};
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_core::{RunId, State};
use cronhold_schedule::{Instant, Span};

/// The reason of a program that is not started because its lease has ended.
const LATE: &str = "the launch is too late: its lease has ended";

/// All programs of a node that do nothing.
///
/// Invariant: `ends` holds exactly the ends of what `running` holds, in order of time.
#[derive(Debug, Default)]
pub struct Noops {
    running: BTreeMap<RunId, RunningNoop>,
    ends: BTreeSet<(Span, RunId)>,
    /// Reports that were not taken yet: at most two for each run that was launched.
    reports: VecDeque<(RunId, ProgramReport)>,
}

/// A program that does nothing until its end.
#[derive(Debug, Clone, Copy)]
struct RunningNoop {
    /// The uptime at which its duration has passed.
    end: Span,
    /// The uptime at which its lease ends.
    kill_at: Option<Span>,
}

impl Noops {
    /// Starts a run's program, unless it runs. A program without a duration ends at once, with one report for both.
    /// With a lease it lives until `kill_at`, unless that is extended.
    pub fn launch(&mut self, run: &Run, kill_at: Option<Span>, uptime: Span) {
        if kill_at.is_some_and(|kill_at| kill_at <= uptime) && !self.running.contains_key(&run.id) {
            return self.report(run.id, ProgramReport::NotLaunched(LATE.to_owned()));
        }
        match run.work {
            Some(ResolvedProgram::Noop(duration)) if duration.is_zero() => {
                self.report(run.id, ProgramReport::Ended(ExitOutcome::SUCCESS));
            }
            Some(ResolvedProgram::Noop(duration)) if !self.running.contains_key(&run.id) => {
                self.begin(run.id, RunningNoop { end: uptime.plus(duration), kill_at });
                self.report(run.id, ProgramReport::Launched);
            }
            Some(ResolvedProgram::Noop(_)) => {}
            _ => self.report(run.id, unsupported(run)),
        }
    }

    /// Adopts a run's program that an earlier daemon started. There is no process that could have been lost, so it ends
    /// when it would have ended. A program with a requested stop has ended in the meantime.
    pub fn adopt(&mut self, run: &Run, now: Instant, uptime: Span) {
        let Some(ResolvedProgram::Noop(duration)) = run.work else {
            return self.report(run.id, unsupported(run));
        };
        if run.state == State::Stopping {
            return self.report(run.id, failed(Reason::Signal(run.terms.signal)));
        }
        let started = run.entered(State::Running).or_else(|| run.entered(State::Starting)).unwrap_or(now);
        let left = started.plus(duration).since(now);
        if left.is_zero() {
            return self.report(run.id, ProgramReport::Ended(ExitOutcome::SUCCESS));
        }
        if !self.running.contains_key(&run.id) {
            self.begin(run.id, RunningNoop { end: uptime.plus(left.min(duration)), kill_at: None });
        }
        if run.state == State::Starting {
            self.report(run.id, ProgramReport::Launched);
        }
    }

    /// Extends leases. No lease becomes shorter, and a lease that has ended cannot be extended.
    pub fn extend(&mut self, leases: &[(RunId, Span)], uptime: Span) {
        for (run, kill_at) in leases {
            let Some(before) = self.running.get(run).copied() else { continue };
            if before.kill_at.is_none_or(|known| known > uptime && known < *kill_at) {
                self.remove(*run);
                self.begin(*run, RunningNoop { kill_at: Some(*kill_at), ..before });
            }
        }
    }

    /// Requests the end of a run's program, as its job defines it.
    pub fn stop(&mut self, run: &Run) {
        self.signal(run.id, run.terms.signal);
    }

    /// Sends a run's program a signal. Any signal ends it.
    pub fn signal(&mut self, run: RunId, signal: Signal) {
        let report = if self.remove(run).is_some() { failed(Reason::Signal(signal)) } else { ProgramReport::Lost };
        self.report(run, report);
    }

    /// Takes up to `most` available reports.
    pub fn take(&mut self, uptime: Span, most: usize) -> Vec<(RunId, ProgramReport)> {
        while self.reports.len() < most
            && let Some((_, run)) = self.ends.first().copied().filter(|(end, _)| *end <= uptime)
            && let Some(running) = self.remove(run)
        {
            let is_done = running.end_at() == running.end;
            self.report(
                run,
                if is_done { ProgramReport::Ended(ExitOutcome::SUCCESS) } else { failed(Reason::LockLost) },
            );
        }
        let count = self.reports.len().min(most);
        self.reports.drain(..count).collect()
    }

    /// The uptime at which there is a report to take: zero if there is one now, `None` if nothing runs.
    pub fn next(&self) -> Option<Span> {
        if self.reports.is_empty() { self.ends.first().map(|(end, _)| *end) } else { Some(Span::ZERO) }
    }

    fn begin(&mut self, run: RunId, running: RunningNoop) {
        self.ends.insert((running.end_at(), run));
        self.running.insert(run, running);
    }

    fn remove(&mut self, run: RunId) -> Option<RunningNoop> {
        let running = self.running.remove(&run)?;
        self.ends.remove(&(running.end_at(), run));
        Some(running)
    }

    fn report(&mut self, run: RunId, report: ProgramReport) {
        self.reports.push_back((run, report));
    }
}

impl RunningNoop {
    /// When it ends, by itself or with its lease.
    fn end_at(&self) -> Span {
        self.kill_at.map_or(self.end, |kill_at| kill_at.min(self.end))
    }
}

/// The report for a kind of program that this version does not support.
fn unsupported(run: &Run) -> ProgramReport {
    let kind = match &run.work {
        Some(ResolvedProgram::Unsupported(kind)) => kind,
        _ => "none",
    };
    ProgramReport::NotLaunched(format!("this version does not support programs of kind `{kind}`"))
}

fn failed(reason: Reason) -> ProgramReport {
    ProgramReport::Ended(ExitOutcome {
        success: false,
        reason: Some(reason),
        exit: None,
        written: None,
        response: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_of;

    fn at(secs: i64) -> Instant {
        Instant::from_secs(secs)
    }

    fn up(secs: u64) -> Span {
        Span::from_secs(secs)
    }

    fn noop(secs: u64, log: &[(State, i64)]) -> Run {
        run_of(ResolvedProgram::Noop(up(secs)), log)
    }

    /// The reports that there are at an uptime, as text.
    fn reports(noops: &mut Noops, secs: u64) -> String {
        let words = noops.take(up(secs), 10).into_iter().map(|(_, report)| match report {
            ProgramReport::Launched => "launched".to_owned(),
            ProgramReport::Ended(verdict) => match verdict.reason {
                Some(reason) => format!("ended by {reason}"),
                None => format!("ended {}", if verdict.success { "well" } else { "badly" }),
            },
            ProgramReport::NotLaunched(why) => format!("not launched: {why}"),
            ProgramReport::Lost => "lost".to_owned(),
            ProgramReport::KeeperLost => "keeper lost".to_owned(),
            ProgramReport::LockLost => "lock lost".to_owned(),
            ProgramReport::TaskStarted(task) => format!("task {task}"),
            ProgramReport::Progress(progress) => progress.to_string(),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    const STARTING: [(State, i64); 1] = [(State::Starting, 100)];

    #[test]
    fn noop_ends_after_its_duration() {
        let mut noops = Noops::default();
        noops.launch(&noop(5, &STARTING), None, up(10));
        noops.launch(&noop(5, &STARTING), None, up(12));
        assert_eq!(noops.next(), Some(Span::ZERO));
        assert_eq!(reports(&mut noops, 10), "launched");
        assert_eq!(noops.next(), Some(up(15)));
        assert_eq!(reports(&mut noops, 14), "");
        assert_eq!(reports(&mut noops, 15), "ended well");
        assert_eq!((reports(&mut noops, 99).as_str(), noops.next()), ("", None));
    }

    #[test]
    fn noop_without_duration_makes_one_report() {
        let mut noops = Noops::default();
        noops.launch(&noop(0, &STARTING), None, up(10));
        assert_eq!(reports(&mut noops, 10), "ended well");
        assert_eq!(noops.next(), None);
    }

    #[test]
    fn other_kinds_are_not_launched() {
        let mut noops = Noops::default();
        let run = run_of(ResolvedProgram::Unsupported("http".to_owned()), &STARTING);
        noops.launch(&run, None, up(1));
        noops.adopt(&run, at(100), up(1));
        let sentence = "not launched: this version does not support programs of kind `http`";
        assert_eq!(reports(&mut noops, 1), format!("{sentence}, {sentence}"));
    }

    #[test]
    fn adopted_noop_ends_when_it_would_have_ended() {
        let running = [(State::Starting, 100), (State::Running, 101)];
        let stopping = [(State::Running, 101), (State::Stopping, 102)];
        // Duration and log of the run, time of day; report at once, uptime of the next, and that report.
        for (duration, log, now, first, end, then) in [
            (10, &running[..], 105, "", 1_006, "ended well"),
            (10, &running[..], 111, "ended well", 9_999, ""),
            (10, &STARTING[..], 105, "launched", 1_005, "ended well"),
            (0, &STARTING[..], 105, "ended well", 9_999, ""),
            (10, &stopping[..], 105, "ended by signal SIGTERM", 9_999, ""),
            // After the clock was set back it takes no longer than its duration.
            (10, &running[..], 50, "", 1_010, "ended well"),
        ] {
            let mut noops = Noops::default();
            noops.adopt(&noop(duration, log), at(now), up(1_000));
            assert_eq!(reports(&mut noops, 1_000), first, "{log:?} at {now}");
            assert_eq!(reports(&mut noops, end - 1), "", "{log:?} at {now}");
            assert_eq!(reports(&mut noops, end), then, "{log:?} at {now}");
        }
    }

    #[test]
    fn any_signal_ends_a_noop() {
        let mut noops = Noops::default();
        let run = noop(60, &STARTING);
        noops.launch(&run, None, up(0));
        noops.stop(&run);
        assert_eq!(reports(&mut noops, 0), "launched, ended by signal SIGTERM");
        noops.launch(&run, None, up(0));
        noops.signal(run.id, Signal::KILL);
        noops.signal(run.id, Signal::KILL);
        assert_eq!(reports(&mut noops, 0), "launched, ended by signal SIGKILL, lost");
        assert_eq!((reports(&mut noops, 99).as_str(), noops.next()), ("", None));
    }

    #[test]
    fn lease_ends_a_noop_unless_extended() {
        // Lease of a noop of 60 seconds, an extension and its time; when the noop ends, and how.
        let lost = "ended by lock lost";
        for (lease, extension, end, how) in [
            (None, None, 60, "ended well"),
            (Some(20), None, 20, lost),
            (Some(60), None, 60, "ended well"),
            (Some(20), Some((40, 10)), 40, lost),
            (Some(20), Some((99, 10)), 60, "ended well"),
            (Some(20), Some((15, 10)), 20, lost),
            (None, Some((40, 10)), 40, lost),
            // The extension is too late, although no report was taken before.
            (Some(20), Some((99, 20)), 20, lost),
        ] {
            let mut noops = Noops::default();
            let run = noop(60, &STARTING);
            noops.launch(&run, lease.map(up), up(0));
            assert_eq!(reports(&mut noops, 0), "launched");
            if let Some((until, at)) = extension {
                noops.extend(&[(run.id, up(until))], up(at));
            }
            assert_eq!(noops.next(), Some(up(end)), "{lease:?} {extension:?}");
            assert_eq!(reports(&mut noops, end), how, "{lease:?} {extension:?}");
            assert_eq!((reports(&mut noops, 999).as_str(), noops.next()), ("", None));
        }
    }

    #[test]
    fn noop_with_ended_lease_is_not_launched() {
        let mut noops = Noops::default();
        noops.launch(&noop(0, &STARTING), Some(up(5)), up(5));
        assert_eq!(reports(&mut noops, 5), format!("not launched: {LATE}"));
        noops.extend(&[(noop(0, &STARTING).id, up(9))], up(5));
        assert_eq!(noops.next(), None);
    }

    #[test]
    fn take_returns_at_most_the_given_number() {
        let mut noops = Noops::default();
        noops.launch(&noop(1, &STARTING), None, up(0));
        assert_eq!(noops.take(up(5), 1).len(), 1);
        assert_eq!(noops.next(), Some(up(1)));
        assert_eq!(noops.take(up(5), 1).len(), 1);
        assert_eq!(noops.take(up(5), 1).len(), 0);
    }
}
