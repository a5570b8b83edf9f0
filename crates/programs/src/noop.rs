//! Programs that do nothing for as long as they say. All of them together are one table with a deadline each, so that
//! a run costs no task and no timer of its own. The table is told the time and never waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cronhold_core::command::{Report, Verdict};
use cronhold_core::record::{Run, Work};
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_core::{RunId, State};
use cronhold_schedule::{Instant, Span};

/// Why a program was not started whose lease was over before.
const LATE: &str = "it came too late to be started: its lease has ended";

/// All programs of a node that do nothing.
///
/// Invariant: `ends` holds exactly the first ends of what `running` holds, in the order of time.
#[derive(Debug, Default)]
pub struct Noops {
    running: BTreeMap<RunId, Running>,
    ends: BTreeSet<(Span, RunId)>,
    /// Reports that nobody has taken yet: at most two for each run that was launched.
    reports: VecDeque<(RunId, Report)>,
}

/// A program that does nothing yet.
#[derive(Debug, Clone, Copy)]
struct Running {
    /// When its time is over.
    end: Span,
    /// When its lease ends.
    kill_at: Option<Span>,
}

impl Noops {
    /// Starts a run's program, unless it is there. One that takes no time has ended when it has started, and both are
    /// one report. With a lease it lives until that uptime, if that is not extended.
    pub fn launch(&mut self, run: &Run, kill_at: Option<Span>, uptime: Span) {
        if kill_at.is_some_and(|kill_at| kill_at <= uptime) && !self.running.contains_key(&run.id) {
            return self.report(run.id, Report::NotLaunched(LATE.to_owned()));
        }
        match run.work {
            Some(Work::Noop(duration)) if duration.is_zero() => self.report(run.id, Report::Ended(Verdict::SUCCESS)),
            Some(Work::Noop(duration)) if !self.running.contains_key(&run.id) => {
                self.begin(run.id, Running { end: uptime.plus(duration), kill_at });
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
            return self.report(run.id, failed(Reason::Signal(run.terms.signal)));
        }
        let started = run.entered(State::Running).or_else(|| run.entered(State::Starting)).unwrap_or(now);
        let left = started.plus(duration).since(now);
        if left.is_zero() {
            return self.report(run.id, Report::Ended(Verdict::SUCCESS));
        }
        if !self.running.contains_key(&run.id) {
            self.begin(run.id, Running { end: uptime.plus(left.min(duration)), kill_at: None });
        }
        if run.state == State::Starting {
            self.report(run.id, Report::Launched);
        }
    }

    /// Programs may live until these uptimes. No lease becomes shorter, and one that has ended stays so.
    pub fn extend(&mut self, leases: &[(RunId, Span)], uptime: Span) {
        for (run, kill_at) in leases {
            let Some(before) = self.running.get(run).copied() else { continue };
            if before.kill_at.is_none_or(|known| known > uptime && known < *kill_at) {
                self.remove(*run);
                self.begin(*run, Running { kill_at: Some(*kill_at), ..before });
            }
        }
    }

    /// Asks a run's program to end, as its job says.
    pub fn stop(&mut self, run: &Run) {
        self.signal(run.id, run.terms.signal);
    }

    /// Sends a run's program a signal. It handles none, so any ends it.
    pub fn signal(&mut self, run: RunId, signal: Signal) {
        let report = if self.remove(run).is_some() { failed(Reason::Signal(signal)) } else { Report::Lost };
        self.report(run, report);
    }

    /// Takes out up to so many reports that there are by now.
    pub fn take(&mut self, uptime: Span, most: usize) -> Vec<(RunId, Report)> {
        while self.reports.len() < most
            && let Some((_, run)) = self.ends.first().copied().filter(|(end, _)| *end <= uptime)
            && let Some(running) = self.remove(run)
        {
            let is_done = running.first() == running.end;
            self.report(run, if is_done { Report::Ended(Verdict::SUCCESS) } else { failed(Reason::LockLost) });
        }
        let count = self.reports.len().min(most);
        self.reports.drain(..count).collect()
    }

    /// When there is a report to be taken: at once, at some uptime, or never as things are.
    pub fn next(&self) -> Option<Span> {
        if self.reports.is_empty() { self.ends.first().map(|(end, _)| *end) } else { Some(Span::ZERO) }
    }

    fn begin(&mut self, run: RunId, running: Running) {
        self.ends.insert((running.first(), run));
        self.running.insert(run, running);
    }

    fn remove(&mut self, run: RunId) -> Option<Running> {
        let running = self.running.remove(&run)?;
        self.ends.remove(&(running.first(), run));
        Some(running)
    }

    fn report(&mut self, run: RunId, report: Report) {
        self.reports.push_back((run, report));
    }
}

impl Running {
    /// When it ends, by itself or with its lease.
    fn first(&self) -> Span {
        self.kill_at.map_or(self.end, |kill_at| kill_at.min(self.end))
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

fn failed(reason: Reason) -> Report {
    Report::Ended(Verdict { success: false, reason: Some(reason), exit: None, written: None })
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
        noops.launch(&noop(5, &STARTING), None, up(10));
        noops.launch(&noop(5, &STARTING), None, up(12));
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
        noops.launch(&noop(0, &STARTING), None, up(10));
        assert_eq!(told(&mut noops, 10), "ended well");
        assert_eq!(noops.next(), None);
    }

    #[test]
    fn others_cannot_be_run() {
        let mut noops = Noops::default();
        let run = run_of(Work::Unsupported("http".to_owned()), &STARTING);
        noops.launch(&run, None, up(1));
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
        noops.launch(&run, None, up(0));
        noops.stop(&run);
        assert_eq!(told(&mut noops, 0), "launched, ended by signal SIGTERM");
        noops.launch(&run, None, up(0));
        noops.signal(run.id, Signal::KILL);
        noops.signal(run.id, Signal::KILL);
        assert_eq!(told(&mut noops, 0), "launched, ended by signal SIGKILL, lost");
        assert_eq!((told(&mut noops, 99).as_str(), noops.next()), ("", None));
    }

    #[test]
    fn a_lease_ends_it_unless_it_is_extended() {
        // The lease of a program that takes 60 seconds, an extension and when it comes; when it ends, and how.
        let lost = "ended by lock lost";
        for (lease, extension, end, how) in [
            (None, None, 60, "ended well"),
            (Some(20), None, 20, lost),
            (Some(60), None, 60, "ended well"),
            (Some(20), Some((40, 10)), 40, lost),
            (Some(20), Some((99, 10)), 60, "ended well"),
            (Some(20), Some((15, 10)), 20, lost),
            (None, Some((40, 10)), 40, lost),
            // It came too late, though nobody has looked meanwhile.
            (Some(20), Some((99, 20)), 20, lost),
        ] {
            let mut noops = Noops::default();
            let run = noop(60, &STARTING);
            noops.launch(&run, lease.map(up), up(0));
            assert_eq!(told(&mut noops, 0), "launched");
            if let Some((until, at)) = extension {
                noops.extend(&[(run.id, up(until))], up(at));
            }
            assert_eq!(noops.next(), Some(up(end)), "{lease:?} {extension:?}");
            assert_eq!(told(&mut noops, end), how, "{lease:?} {extension:?}");
            assert_eq!((told(&mut noops, 999).as_str(), noops.next()), ("", None));
        }
    }

    #[test]
    fn a_lease_that_is_over_lets_nothing_start() {
        let mut noops = Noops::default();
        noops.launch(&noop(0, &STARTING), Some(up(5)), up(5));
        assert_eq!(told(&mut noops, 5), format!("not launched: {LATE}"));
        noops.extend(&[(noop(0, &STARTING).id, up(9))], up(5));
        assert_eq!(noops.next(), None);
    }

    #[test]
    fn takes_no_more_than_asked() {
        let mut noops = Noops::default();
        noops.launch(&noop(1, &STARTING), None, up(0));
        assert_eq!(noops.take(up(5), 1).len(), 1);
        assert_eq!(noops.next(), Some(up(1)));
        assert_eq!(noops.take(up(5), 1).len(), 1);
        assert_eq!(noops.take(up(5), 1).len(), 0);
    }
}
