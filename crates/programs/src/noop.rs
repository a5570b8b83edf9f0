//! Programs that do nothing for as long as they say. All of them together are one table with a deadline each, so that
//! a run costs no task and no timer of its own. The table is told the time and never waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cronhold_core::command::{Report, Verdict};
use cronhold_core::record::{Run, Work};
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_core::{RunId, State};
use cronhold_schedule::{Instant, Span};

/// All programs of a node that do nothing.
///
/// Invariant: `ends` holds exactly what `running` holds, in the order of time.
#[derive(Debug, Default)]
pub struct Noops {
    running: BTreeMap<RunId, Span>,
    ends: BTreeSet<(Span, RunId)>,
    /// Reports that nobody has taken yet: at most two for each run that was launched.
    reports: VecDeque<(RunId, Report)>,
}

impl Noops {
    /// Starts a run's program, unless it is there. One that takes no time has ended when it has started, and both are
    /// one report.
    pub fn launch(&mut self, run: &Run, uptime: Span) {
        match run.work {
            Some(Work::Noop(duration)) if duration.is_zero() => self.report(run.id, Report::Ended(Verdict::SUCCESS)),
            Some(Work::Noop(duration)) if !self.running.contains_key(&run.id) => {
                self.begin(run.id, uptime.plus(duration));
                self.report(run.id, Report::Launched);
            }
            Some(Work::Noop(_)) => {}
            _ => self.report(run.id, unsupported(run)),
        }
    }

    /// Goes on with a run's program that an earlier life of the node has started. There is no process that could have
    /// been lost, so it ends when it would have ended; one that was told to end has done so meanwhile.
    pub fn adopt(&mut self, run: &Run, now: Instant, uptime: Span) {
        let Some(Work::Noop(duration)) = run.work else {
            return self.report(run.id, unsupported(run));
        };
        if run.state == State::Stopping {
            return self.report(run.id, ended_by(run.terms.signal));
        }
        let started = run.entered(State::Running).or_else(|| run.entered(State::Starting)).unwrap_or(now);
        let left = started.plus(duration).since(now);
        if left.is_zero() {
            return self.report(run.id, Report::Ended(Verdict::SUCCESS));
        }
        if !self.running.contains_key(&run.id) {
            self.begin(run.id, uptime.plus(left.min(duration)));
        }
        if run.state == State::Starting {
            self.report(run.id, Report::Launched);
        }
    }

    /// Asks a run's program to end, as its job says.
    pub fn stop(&mut self, run: &Run) {
        self.signal(run.id, run.terms.signal);
    }

    /// Sends a run's program a signal. It handles none, so any ends it.
    pub fn signal(&mut self, run: RunId, signal: Signal) {
        let report = match self.running.remove(&run) {
            Some(end) => {
                self.ends.remove(&(end, run));
                ended_by(signal)
            }
            None => Report::Lost,
        };
        self.report(run, report);
    }

    /// Takes out up to so many reports that there are by now.
    pub fn take(&mut self, uptime: Span, most: usize) -> Vec<(RunId, Report)> {
        while self.reports.len() < most
            && let Some((end, run)) = self.ends.first().copied().filter(|(end, _)| *end <= uptime)
        {
            self.ends.remove(&(end, run));
            self.running.remove(&run);
            self.report(run, Report::Ended(Verdict::SUCCESS));
        }
        let count = self.reports.len().min(most);
        self.reports.drain(..count).collect()
    }

    /// When there is a report to be taken: at once, at some uptime, or never as things are.
    pub fn next(&self) -> Option<Span> {
        if self.reports.is_empty() { self.ends.first().map(|(end, _)| *end) } else { Some(Span::ZERO) }
    }

    fn begin(&mut self, run: RunId, end: Span) {
        self.running.insert(run, end);
        self.ends.insert((end, run));
    }

    fn report(&mut self, run: RunId, report: Report) {
        self.reports.push_back((run, report));
    }
}

/// What a run is told whose kind of program is known by name only.
fn unsupported(run: &Run) -> Report {
    let kind = match &run.work {
        Some(Work::Unsupported(kind)) => kind,
        _ => "none",
    };
    Report::NotLaunched(format!("this version cannot run programs of its kind ({kind})"))
}

fn ended_by(signal: Signal) -> Report {
    Report::Ended(Verdict { success: false, reason: Some(Reason::Signal(signal)), exit: None, written: None })
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
        run_of(Work::Noop(up(secs)), log)
    }

    /// The reports there are by an uptime, in words.
    fn told(noops: &mut Noops, secs: u64) -> String {
        let words = noops.take(up(secs), 10).into_iter().map(|(_, report)| match report {
            Report::Launched => "launched".to_owned(),
            Report::Ended(verdict) => match verdict.reason {
                Some(reason) => format!("ended by {reason}"),
                None => format!("ended {}", if verdict.success { "well" } else { "badly" }),
            },
            Report::NotLaunched(why) => format!("not launched: {why}"),
            Report::Lost => "lost".to_owned(),
            Report::KeeperLost => "keeper lost".to_owned(),
            Report::LockLost => "lock lost".to_owned(),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    const STARTING: [(State, i64); 1] = [(State::Starting, 100)];

    #[test]
    fn ends_when_its_time_is_over() {
        let mut noops = Noops::default();
        noops.launch(&noop(5, &STARTING), up(10));
        noops.launch(&noop(5, &STARTING), up(12));
        assert_eq!(noops.next(), Some(Span::ZERO));
        assert_eq!(told(&mut noops, 10), "launched");
        assert_eq!(noops.next(), Some(up(15)));
        assert_eq!(told(&mut noops, 14), "");
        assert_eq!(told(&mut noops, 15), "ended well");
        assert_eq!((told(&mut noops, 99).as_str(), noops.next()), ("", None));
    }

    #[test]
    fn one_that_takes_no_time_makes_one_report() {
        let mut noops = Noops::default();
        noops.launch(&noop(0, &STARTING), up(10));
        assert_eq!(told(&mut noops, 10), "ended well");
        assert_eq!(noops.next(), None);
    }

    #[test]
    fn others_cannot_be_run() {
        let mut noops = Noops::default();
        let run = run_of(Work::Unsupported("http".to_owned()), &STARTING);
        noops.launch(&run, up(1));
        noops.adopt(&run, at(100), up(1));
        let sentence = "not launched: this version cannot run programs of its kind (http)";
        assert_eq!(told(&mut noops, 1), format!("{sentence}, {sentence}"));
    }

    #[test]
    fn goes_on_after_a_restart() {
        let running = [(State::Starting, 100), (State::Running, 101)];
        let stopping = [(State::Running, 101), (State::Stopping, 102)];
        // The duration and the log of the run, the time of day; what is told at once and by then.
        for (duration, log, now, first, end, then) in [
            (10, &running[..], 105, "", 1_006, "ended well"),
            (10, &running[..], 111, "ended well", 9_999, ""),
            (10, &STARTING[..], 105, "launched", 1_005, "ended well"),
            (0, &STARTING[..], 105, "ended well", 9_999, ""),
            (10, &stopping[..], 105, "ended by signal SIGTERM", 9_999, ""),
            // The clock was set back: it does not take longer than it would from now on.
            (10, &running[..], 50, "", 1_010, "ended well"),
        ] {
            let mut noops = Noops::default();
            noops.adopt(&noop(duration, log), at(now), up(1_000));
            assert_eq!(told(&mut noops, 1_000), first, "{log:?} at {now}");
            assert_eq!(told(&mut noops, end - 1), "", "{log:?} at {now}");
            assert_eq!(told(&mut noops, end), then, "{log:?} at {now}");
        }
    }

    #[test]
    fn any_signal_ends_it() {
        let mut noops = Noops::default();
        let run = noop(60, &STARTING);
        noops.launch(&run, up(0));
        noops.stop(&run);
        assert_eq!(told(&mut noops, 0), "launched, ended by signal SIGTERM");
        noops.launch(&run, up(0));
        noops.signal(run.id, Signal::KILL);
        noops.signal(run.id, Signal::KILL);
        assert_eq!(told(&mut noops, 0), "launched, ended by signal SIGKILL, lost");
        assert_eq!((told(&mut noops, 99).as_str(), noops.next()), ("", None));
    }

    #[test]
    fn takes_no_more_than_asked() {
        let mut noops = Noops::default();
        noops.launch(&noop(1, &STARTING), up(0));
        assert_eq!(noops.take(up(5), 1).len(), 1);
        assert_eq!(noops.next(), Some(up(1)));
        assert_eq!(noops.take(up(5), 1).len(), 1);
        assert_eq!(noops.take(up(5), 1).len(), 0);
    }
}
