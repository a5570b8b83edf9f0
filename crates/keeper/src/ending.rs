//! How a program is brought to its end: asked by a signal, given some time, and then killed with all that descends from
//! it. A stop and the end of a lease are the same thing with different clocks, except that a lease can be extended for as
//! long as it has not ended. This is the state of one program; it is told the time and says what to do next.

use crate::protocol::Exit;

/// How often a dying tree is looked at, in microseconds.
const KILL_LOOK: u64 = 10_000;
/// How soon a tree is looked at again whose first process has ended in its grace; each time this much later.
const DRAIN_LOOK: u64 = 50_000;
/// At most so many times that.
const DRAIN_LOOKS: u32 = 20;
/// After so many looks a process that does not die is left alone, and said so.
const LOOKS_MAX: u32 = 1_000;

/// Where a program stands on its way to its end.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    /// The signal of its job, and the microseconds from it to SIGKILL.
    signal: i32,
    grace: u64,
    /// When its lease ends.
    lease: Option<u64>,
    /// Whether the end of the lease was announced by the signal.
    is_warned: bool,
    /// Whether it was ever, also of a lease that was extended after that.
    was_warned: bool,
    /// Whether it is killed because its lease has ended.
    is_lease_over: bool,
    /// When the grace of a stop ends.
    stop: Option<u64>,
    /// Whether the signal of that stop is still to be sent.
    must_ask: bool,
    is_killing: bool,
    /// How its first process ended, while others of its tree are still there.
    exit: Option<Exit>,
    next_look: u64,
    looks: u32,
    /// Whether those outside the group were told to end.
    pub(crate) strays_told: bool,
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing until [`Ending::due`].
    Wait,
    /// Look what lives, so that it stays known, and send the group the signal that asks it to end.
    Ask,
    /// Look what lives, and kill it.
    Kill,
    /// Look whether anything lives.
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
            next_look: 0,
            looks: 0,
            strays_told: false,
        }
    }

    /// It was asked to end, and is killed after the grace. A later stop can only come sooner.
    pub(crate) fn stop(&mut self, signal: i32, grace: u64, now: u64) {
        let kill_at = now.saturating_add(grace);
        self.signal = signal;
        self.stop = Some(self.stop.map_or(kill_at, |earlier| earlier.min(kill_at)));
        self.must_ask = self.exit.is_none();
    }

    /// It is killed now.
    pub(crate) fn kill(&mut self) {
        self.is_killing = true;
    }

    /// Its lease ends later. An earlier time than before changes nothing, and a lease that has ended stays so: whoever
    /// extends it has come too late, even if nothing was killed yet.
    pub(crate) fn extend(&mut self, lease: u64, now: u64) {
        let is_later = self.lease.is_none_or(|before| before > now && before < lease);
        if is_later && !self.is_killing {
            self.lease = Some(lease);
            self.is_warned = false;
        }
    }

    /// Whether an end like this came from the lease. A program that goes on after a warning that was taken back ends for
    /// reasons of its own, unless it ends by that very signal.
    pub(crate) fn is_by_lease(&self, exit: Exit) -> bool {
        self.is_lease_over || self.is_warned || (self.was_warned && exit == Exit::Signal(self.signal))
    }

    /// Its first process has ended. True when the run is over with it; otherwise the rest of its tree has to end first.
    pub(crate) fn ended(&mut self, exit: Exit, now: u64) -> bool {
        self.exit = Some(exit);
        self.must_ask = false;
        self.next_look = now;
        !self.is_ending()
    }

    /// How its first process ended.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// The signal that asks it to end.
    pub(crate) fn signal(&self) -> i32 {
        self.signal
    }

    /// The signal and the grace of its job.
    pub(crate) fn terms(&self) -> (i32, u64) {
        (self.signal, self.grace)
    }

    /// Something of it was alive at this time, or a look has to wait until then. False when there were enough looks.
    pub(crate) fn looked(&mut self, now: u64) -> bool {
        self.looks += 1;
        self.next_look =
            now + if self.is_killing { KILL_LOOK } else { DRAIN_LOOK * u64::from(self.looks.min(DRAIN_LOOKS)) };
        !self.is_killing || self.looks < LOOKS_MAX
    }

    /// Looks not before this time.
    pub(crate) fn postpone(&mut self, until: u64) {
        self.next_look = until;
    }

    /// What to do now.
    pub(crate) fn step(&mut self, now: u64) -> Step {
        if !self.is_killing && self.kill_at().is_some_and(|kill_at| kill_at <= now) {
            self.is_killing = true;
            self.is_lease_over = self.lease.is_some_and(|lease| self.stop.is_none_or(|stop| lease < stop));
        }
        if self.is_killing {
            return if self.next_look <= now { Step::Kill } else { Step::Wait };
        }
        if self.exit.is_some() {
            return if self.next_look <= now { Step::Drain } else { Step::Wait };
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
            return Some(self.next_look);
        }
        let look = self.exit.map(|_| self.next_look);
        let ask = self.must_ask.then_some(0);
        [self.kill_at(), self.warn_at(), look, ask].into_iter().flatten().min()
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.is_killing || self.is_warned || self.stop.is_some()
    }

    fn kill_at(&self) -> Option<u64> {
        [self.lease, self.stop].into_iter().flatten().min()
    }

    /// One that was stopped has had its signal.
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
    fn without_stop_and_lease_there_is_nothing_to_do() {
        let mut ending = ending(None);
        assert_eq!((ending.due(), ending.step(u64::MAX)), (None, Step::Wait));
        assert!(ending.ended(Exit::Code(0), 5));
    }

    #[test]
    fn a_stop_kills_after_its_grace_and_a_later_one_only_sooner() {
        let mut ending = ending(None);
        ending.stop(2, 50, 1_000);
        assert_eq!((ending.due(), ending.step(1_000)), (Some(0), Step::Ask));
        assert_eq!((ending.due(), ending.step(1_049)), (Some(1_050), Step::Wait));
        ending.stop(TERM, 500, 1_010);
        assert_eq!((ending.step(1_010), ending.signal()), (Step::Ask, TERM));
        assert_eq!(ending.due(), Some(1_050));
        assert_eq!(ending.step(1_050), Step::Kill);
        assert!(ending.looked(1_050));
        assert_eq!(ending.step(1_051), Step::Wait);
        assert_eq!(ending.step(1_050 + KILL_LOOK), Step::Kill);
    }

    #[test]
    fn a_lease_warns_kills_and_can_be_extended() {
        let mut ending = ending(Some(1_000));
        assert_eq!((ending.due(), ending.step(899)), (Some(900), Step::Wait));
        assert_eq!(ending.step(900), Step::Ask);
        assert_eq!((ending.due(), ending.step(901)), (Some(1_000), Step::Wait));
        ending.extend(2_000, 999);
        assert_eq!((ending.due(), ending.step(1_500)), (Some(1_900), Step::Wait));
        assert_eq!(ending.step(5_000), Step::Kill);
    }

    #[test]
    fn a_lease_never_becomes_shorter_and_stays_over() {
        // The lease, the extension and the time at which it comes; when there is something to do after it.
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
    fn who_ended_it() {
        let by_lease = |steps: &[u64], change: &dyn Fn(&mut Ending), exit| {
            let mut ending = ending(Some(1_000));
            for at in steps {
                ending.step(*at);
            }
            change(&mut ending);
            ending.is_by_lease(exit)
        };
        let (term, kill) = (Exit::Signal(TERM), Exit::Signal(9));
        let nothing = |_: &mut Ending| {};
        let extended = |ending: &mut Ending| ending.extend(2_000, 950);
        assert!(!by_lease(&[899], &nothing, term));
        assert!(by_lease(&[900], &nothing, term));
        assert!(by_lease(&[900], &nothing, Exit::Code(0)));
        assert!(by_lease(&[900, 1_000], &nothing, kill));
        // The signal was on its way when the lease was extended; what comes later is the program's own doing.
        assert!(by_lease(&[900], &extended, term));
        assert!(!by_lease(&[900], &extended, Exit::Code(1)));
        // A stop that comes to its end first.
        let stopped = |ending: &mut Ending| {
            ending.stop(TERM, 10, 500);
            ending.step(510);
        };
        assert!(!by_lease(&[], &stopped, kill));
        // A lease that ends before the grace of a stop does.
        let outlived = |ending: &mut Ending| {
            ending.stop(TERM, 5_000, 500);
            ending.step(1_000);
        };
        assert!(by_lease(&[], &outlived, kill));
    }

    #[test]
    fn what_is_left_of_a_stopped_program_has_the_rest_of_the_grace() {
        let mut ending = ending(None);
        ending.stop(TERM, 200_000, 0);
        assert!(!ending.ended(Exit::Signal(TERM), 10));
        assert_eq!((ending.due(), ending.step(10)), (Some(10), Step::Drain));
        assert!(ending.looked(10));
        assert_eq!(ending.due(), Some(10 + DRAIN_LOOK));
        ending.postpone(190_000);
        assert_eq!(ending.step(200_000), Step::Kill);
    }

    #[test]
    fn looks_are_bounded() {
        let mut ending = ending(None);
        ending.kill();
        let looks = (0..LOOKS_MAX * 2).take_while(|_| ending.looked(0)).count();
        assert_eq!(looks + 1, LOOKS_MAX as usize);
    }
}
