//! How a program is ended: it receives a signal, has a grace period, and is then killed with everything that descends
//! from it. A stop and the end of a lease work alike, except that a lease can be extended until it has ended. This is
//! the state of one program; it takes the time as an argument and returns what to do next.

use crate::protocol::ProcessExit;

/// Time between two of the first scans of a tree that is being killed, in microseconds, and how many there are. Then it
/// doubles each time: a process that does not die waits for the kernel, such as for a disk.
const KILL_SCAN: u64 = 10_000;
const KILL_SCANS: u32 = 20;
/// The longest time between two scans of a tree that is being killed.
const KILL_SCAN_MAX: u64 = 5_000_000;
/// After this many scans, about ten seconds, a process that does not die is logged.
const KILL_SCANS_LOGGED: u32 = 29;
/// Time to the first scan of a tree whose first process has ended within its grace period; it grows by this each time.
const DRAIN_SCAN: u64 = 50_000;
/// The longest time between two such scans, as a multiple.
const DRAIN_SCANS: u32 = 20;

/// The end of one program.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    /// The signal of its job, and the microseconds from it to SIGKILL.
    signal: i32,
    grace: u64,
    /// When the lease ends.
    lease: Option<u64>,
    /// Whether the signal was sent because the lease is about to end.
    is_warned: bool,
    /// Whether that ever happened, also before the lease was extended.
    was_warned: bool,
    /// Whether it is killed because the lease has ended.
    is_lease_over: bool,
    /// When the grace period of a stop ends.
    stop: Option<u64>,
    /// Whether the signal of that stop is still to be sent.
    must_ask: bool,
    is_killing: bool,
    /// How the first process ended, while others of the tree live.
    exit: Option<ProcessExit>,
    next_scan: u64,
    scans: u32,
    kill_scans: u32,
    /// Whether processes outside the group got the signal.
    pub(crate) outsiders_signalled: bool,
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing until [`Ending::due`].
    Wait,
    /// Scan processes, so that they stay known, and send the group the signal to end.
    Ask,
    /// Scan processes and kill them.
    Kill,
    /// Scan whether anything lives.
    Drain,
}

impl Ending {
    pub(crate) fn new(signal: i32, grace: u64, lease: Option<u64>) -> Self {
        Self {
            signal,
            grace,
            lease,
            is_warned: false,
            was_warned: false,
            is_lease_over: false,
            stop: None,
            must_ask: false,
            is_killing: false,
            exit: None,
            next_scan: 0,
            scans: 0,
            kill_scans: 0,
            outsiders_signalled: false,
        }
    }

    /// Requests the end of the program, and kills it after the grace period. A later stop can only shorten that.
    pub(crate) fn stop(&mut self, signal: i32, grace: u64, now: u64) {
        let kill_at = now.saturating_add(grace);
        self.signal = signal;
        self.stop = Some(self.stop.map_or(kill_at, |earlier| earlier.min(kill_at)));
        self.must_ask = self.exit.is_none();
    }

    /// Kills it now.
    pub(crate) fn kill(&mut self) {
        self.is_killing = true;
    }

    /// Extends the lease. An earlier time than before changes nothing. A lease that has ended cannot be extended, even
    /// if nothing was killed yet.
    pub(crate) fn extend(&mut self, lease: u64, now: u64) {
        let is_later = self.lease.is_none_or(|before| before > now && before < lease);
        if is_later && !self.is_killing {
            self.lease = Some(lease);
            self.is_warned = false;
        }
    }

    /// Whether the lease caused an exit. A program that continued after its lease was extended ends for reasons of its
    /// own, unless it ends by the signal that announced the end of the lease.
    pub(crate) fn is_by_lease(&self, exit: ProcessExit) -> bool {
        self.is_lease_over || self.is_warned || (self.was_warned && exit == ProcessExit::Signal(self.signal))
    }

    /// The first process has ended. Returns `true` if the run is over; otherwise the rest of the tree has to end first.
    pub(crate) fn ended(&mut self, exit: ProcessExit, now: u64) -> bool {
        self.exit = Some(exit);
        self.must_ask = false;
        self.next_scan = now;
        !self.is_ending()
    }

    /// How its first process ended.
    pub(crate) fn exit(&self) -> Option<ProcessExit> {
        self.exit
    }

    /// The signal that requests its end.
    pub(crate) fn signal(&self) -> i32 {
        self.signal
    }

    /// The signal and the grace of its job.
    pub(crate) fn terms(&self) -> (i32, u64) {
        (self.signal, self.grace)
    }

    /// A scan found something alive. The run is not over until nothing is: a process that lives may still write.
    /// Returns `true` once, when killed processes have lived for long enough to be logged.
    pub(crate) fn scanned(&mut self, now: u64) -> bool {
        if !self.is_killing {
            self.scans = self.scans.saturating_add(1);
            self.next_scan = now + DRAIN_SCAN * u64::from(self.scans.min(DRAIN_SCANS));
            return false;
        }
        self.kill_scans = self.kill_scans.saturating_add(1);
        let doublings = self.kill_scans.saturating_sub(KILL_SCANS).min(16);
        self.next_scan = now + (KILL_SCAN << doublings).min(KILL_SCAN_MAX);
        self.kill_scans == KILL_SCANS_LOGGED
    }

    /// Scans not before this time.
    pub(crate) fn postpone(&mut self, until: u64) {
        self.next_scan = until;
    }

    /// What to do now.
    pub(crate) fn step(&mut self, now: u64) -> Step {
        if !self.is_killing && self.kill_at().is_some_and(|kill_at| kill_at <= now) {
            self.is_killing = true;
            self.is_lease_over = self.lease.is_some_and(|lease| self.stop.is_none_or(|stop| lease < stop));
        }
        if self.is_killing {
            return if self.next_scan <= now { Step::Kill } else { Step::Wait };
        }
        if self.exit.is_some() {
            return if self.next_scan <= now { Step::Drain } else { Step::Wait };
        }
        if std::mem::take(&mut self.must_ask) {
            return Step::Ask;
        }
        if self.warn_at().is_some_and(|warn_at| warn_at <= now) {
            (self.is_warned, self.was_warned) = (true, true);
            return Step::Ask;
        }
        Step::Wait
    }

    /// When there is something to do.
    pub(crate) fn due(&self) -> Option<u64> {
        if self.is_killing {
            return Some(self.next_scan);
        }
        let look = self.exit.map(|_| self.next_scan);
        let ask = self.must_ask.then_some(0);
        [self.kill_at(), self.warn_at(), look, ask].into_iter().flatten().min()
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.is_killing || self.is_warned || self.stop.is_some()
    }

    fn kill_at(&self) -> Option<u64> {
        [self.lease, self.stop].into_iter().flatten().min()
    }

    /// When the end of the lease is announced. A stopped program got the signal already.
    fn warn_at(&self) -> Option<u64> {
        let lease = self.lease.filter(|_| !self.is_warned && self.stop.is_none())?;
        Some(lease.saturating_sub(self.grace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: i32 = 15;

    fn ending(lease: Option<u64>) -> Ending {
        Ending::new(TERM, 100, lease)
    }

    #[test]
    fn program_without_stop_and_lease_needs_nothing() {
        let mut ending = ending(None);
        assert_eq!((ending.due(), ending.step(u64::MAX)), (None, Step::Wait));
        assert!(ending.ended(ProcessExit::Code(0), 5));
    }

    #[test]
    fn stop_kills_after_the_grace_period_and_a_later_stop_only_shortens_it() {
        let mut ending = ending(None);
        ending.stop(2, 50, 1_000);
        assert_eq!((ending.due(), ending.step(1_000)), (Some(0), Step::Ask));
        assert_eq!((ending.due(), ending.step(1_049)), (Some(1_050), Step::Wait));
        ending.stop(TERM, 500, 1_010);
        assert_eq!((ending.step(1_010), ending.signal()), (Step::Ask, TERM));
        assert_eq!(ending.due(), Some(1_050));
        assert_eq!(ending.step(1_050), Step::Kill);
        assert!(!ending.scanned(1_050));
        assert_eq!(ending.step(1_051), Step::Wait);
        assert_eq!(ending.step(1_050 + KILL_SCAN), Step::Kill);
    }

    #[test]
    fn lease_announces_its_end_then_kills_unless_extended() {
        let mut ending = ending(Some(1_000));
        assert_eq!((ending.due(), ending.step(899)), (Some(900), Step::Wait));
        assert_eq!(ending.step(900), Step::Ask);
        assert_eq!((ending.due(), ending.step(901)), (Some(1_000), Step::Wait));
        ending.extend(2_000, 999);
        assert_eq!((ending.due(), ending.step(1_500)), (Some(1_900), Step::Wait));
        assert_eq!(ending.step(5_000), Step::Kill);
    }

    #[test]
    fn lease_never_becomes_shorter_and_stays_ended() {
        // The lease, the extension and its time; when the next action is due after it.
        for (lease, extension, now, due) in [
            (Some(1_000), 2_000, 500, 1_900),
            (Some(1_000), 700, 500, 900),
            (Some(1_000), 2_000, 1_000, 900),
            (Some(1_000), 2_000, 7_000, 900),
            (None, 2_000, 500, 1_900),
        ] {
            let mut ending = ending(lease);
            ending.extend(extension, now);
            assert_eq!(ending.due(), Some(due), "{lease:?} {extension} at {now}");
        }
        let mut ending = ending(Some(1_000));
        assert_eq!(ending.step(1_000), Step::Kill);
        ending.extend(9_000, 999);
        assert_eq!(ending.step(1_001), Step::Kill);
    }

    #[test]
    fn exit_is_attributed_to_the_lease_only_if_it_caused_it() {
        let by_lease = |steps: &[u64], change: &dyn Fn(&mut Ending), exit| {
            let mut ending = ending(Some(1_000));
            for at in steps {
                ending.step(*at);
            }
            change(&mut ending);
            ending.is_by_lease(exit)
        };
        let (term, kill) = (ProcessExit::Signal(TERM), ProcessExit::Signal(9));
        let nothing = |_: &mut Ending| {};
        let extended = |ending: &mut Ending| ending.extend(2_000, 950);
        assert!(!by_lease(&[899], &nothing, term));
        assert!(by_lease(&[900], &nothing, term));
        assert!(by_lease(&[900], &nothing, ProcessExit::Code(0)));
        assert!(by_lease(&[900, 1_000], &nothing, kill));
        // The signal was in flight when the lease was extended. A later end is not caused by the lease.
        assert!(by_lease(&[900], &extended, term));
        assert!(!by_lease(&[900], &extended, ProcessExit::Code(1)));
        // A stop whose grace period ends first.
        let stopped = |ending: &mut Ending| {
            ending.stop(TERM, 10, 500);
            ending.step(510);
        };
        assert!(!by_lease(&[], &stopped, kill));
        // A lease that ends before the grace period of a stop.
        let outlived = |ending: &mut Ending| {
            ending.stop(TERM, 5_000, 500);
            ending.step(1_000);
        };
        assert!(by_lease(&[], &outlived, kill));
    }

    #[test]
    fn rest_of_a_stopped_tree_has_the_rest_of_the_grace_period() {
        let mut ending = ending(None);
        ending.stop(TERM, 200_000, 0);
        assert!(!ending.ended(ProcessExit::Signal(TERM), 10));
        assert_eq!((ending.due(), ending.step(10)), (Some(10), Step::Drain));
        assert!(!ending.scanned(10));
        assert_eq!(ending.due(), Some(10 + DRAIN_SCAN));
        ending.postpone(190_000);
        assert_eq!(ending.step(200_000), Step::Kill);
    }

    #[test]
    fn process_that_does_not_die_is_scanned_ever_more_rarely_and_logged_once() {
        let mut ending = ending(None);
        ending.kill();
        let (mut now, mut waits, mut logged) = (0, Vec::new(), Vec::new());
        for _ in 0..1_000 {
            assert_eq!(ending.step(now), Step::Kill);
            if ending.scanned(now) {
                logged.push(now);
            }
            let next = ending.due().unwrap();
            waits.push(next - now);
            now = next;
        }
        assert_eq!((waits[0], waits[19]), (KILL_SCAN, KILL_SCAN));
        assert!(waits.is_sorted());
        assert_eq!(waits[999], KILL_SCAN_MAX);
        assert_eq!(logged.len(), 1);
        assert!((1_000_000..20_000_000).contains(&logged[0]), "{logged:?}");
    }
}
