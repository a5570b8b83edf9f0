//! The time of the store: the clock of the leader, which stamps every change. A new leader has another clock, and an
//! operator can set the clock of a leader back or forward, so times of different terms are not compared: a lock that was
//! stamped in an earlier term expires its whole time to live after this process has first seen the current term, or later.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use cronhold_schedule::{Instant, Span};
use cronhold_store::lock_mutex;
use tokio::time;

use crate::wire::ZnodeStat;

/// A clock that differs from the expected time by more than this was set. Less is the drift between two clocks.
const STEP_MIN: Span = Span::from_secs(1);

/// The local time that may pass for each second of drift between two clocks that were not set.
const DRIFT_PERIOD: u64 = 1_000;

/// The age of an observation that is not used for locks that were stamped after it, because the clock may have been set
/// back since.
const OBSERVATION_AGE: Duration = Duration::from_secs(1);

/// Estimates the time of the store between two requests for it.
#[derive(Debug, Default)]
pub(crate) struct LeaderClock(Mutex<ClockState>);

#[derive(Debug, Default)]
struct ClockState {
    term: Option<ClockTerm>,
    /// The latest time that was returned to a caller.
    latest: Option<Instant>,
}

/// The clock of one leader, as long as it is not set.
#[derive(Debug, Clone, Copy)]
struct ClockTerm {
    leader: i64,
    /// The first transaction of the term, as far as this process knows.
    first: i64,
    /// The time at which this process first saw the term.
    seen: Instant,
    /// The last transaction whose time is known, its time, when it was sent from here, and when its reply arrived.
    zxid: i64,
    time: Instant,
    sent: time::Instant,
    arrived: time::Instant,
}

impl ClockTerm {
    /// The time is this or later, because the reply took a while and local time goes on.
    fn lower_bound(&self, now: time::Instant) -> Instant {
        self.time.plus(elapsed(self.arrived, now))
    }

    /// The time is this or earlier, unless the clock was set forward.
    fn upper_bound(&self, now: time::Instant) -> Instant {
        let passed = elapsed(self.sent, now);
        self.time.plus(passed).plus(Span::from_micros(passed.micros() / DRIFT_PERIOD))
    }

    /// The term after a reply to a request that was sent at `sent`.
    fn after(self, stat: &ZnodeStat, sent: time::Instant, arrived: time::Instant) -> Self {
        let known = Self { zxid: stat.zxid, time: stat.modified, sent, arrived, ..self };
        let leader = stat.leader();
        if leader != self.leader {
            return Self { leader, first: leader << LEADER_SHIFT, seen: stat.modified, ..known };
        }
        let is_behind = stat.modified.plus(STEP_MIN) < self.lower_bound(sent);
        let is_ahead = stat.modified > self.upper_bound(arrived).plus(STEP_MIN);
        if is_behind || is_ahead {
            // Transactions since the last reply may be older or newer than the step.
            return Self { first: stat.zxid, seen: stat.modified, ..known };
        }
        known
    }
}

/// Transactions have the number of the leader in their upper half.
const LEADER_SHIFT: u32 = 32;

/// The local time between two moments.
fn elapsed(from: time::Instant, to: time::Instant) -> Span {
    Span::from_micros(u64::try_from(to.saturating_duration_since(from).as_micros()).unwrap_or(u64::MAX))
}

impl LeaderClock {
    /// Takes the time from a znode that was just set by a request that was sent at `sent`. Returns the time of the store,
    /// which never decreases.
    pub(crate) fn observe(&self, stat: &ZnodeStat, sent: time::Instant, arrived: time::Instant) -> Instant {
        let mut state = self.lock();
        state.term = Some(match state.term {
            // A reply can be overtaken by the reply to a later request.
            Some(term) if term.zxid >= stat.zxid => term,
            Some(term) => term.after(stat, sent, arrived),
            None => {
                let (leader, time) = (stat.leader(), stat.modified);
                ClockTerm { leader, first: leader << LEADER_SHIFT, seen: time, zxid: stat.zxid, time, sent, arrived }
            }
        });
        let time = state.latest.map_or(stat.modified, |latest| latest.max(stat.modified));
        state.latest = Some(time);
        time
    }

    /// A lower bound of the time; `None` before the time was first requested. It decreases if the clock of the leader is
    /// set back.
    pub(crate) fn lower_bound(&self, now: time::Instant) -> Option<Instant> {
        self.lock().term.map(|term| term.lower_bound(now))
    }

    /// Whether the lower bound can be compared with the time of a znode. If not, the time must be requested: another
    /// leader may have stamped the znode, or the same one after its clock was set back.
    pub(crate) fn covers(&self, stat: &ZnodeStat, now: time::Instant) -> bool {
        self.lock().term.is_some_and(|term| {
            let is_recent = now.saturating_duration_since(term.arrived) <= OBSERVATION_AGE;
            let is_in_order = stat.leader() == term.leader && stat.modified >= term.time;
            term.zxid >= stat.zxid || (is_recent && is_in_order)
        })
    }

    /// When a lock expires that was stamped with `stat`, by the clock of the current term.
    pub(crate) fn end_of_lock(&self, stat: &ZnodeStat, ttl: Span) -> Instant {
        match self.lock().term {
            Some(term) if stat.zxid < term.first => term.seen.plus(ttl),
            _ => stat.modified.plus(ttl),
        }
    }

    /// How far the clock was set back behind a time that was returned to a caller; `None` if it has reached that time.
    pub(crate) fn setback(&self, now: time::Instant) -> Option<Span> {
        let state = self.lock();
        let (time, latest) = (state.term?.lower_bound(now), state.latest?);
        (time.plus(STEP_MIN) < latest).then(|| latest.since(time))
    }

    fn lock(&self) -> MutexGuard<'_, ClockState> {
        lock_mutex(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600;

    fn stat(leader: i64, number: i64, secs: i64) -> ZnodeStat {
        ZnodeStat { version: 1, modified: Instant::from_secs(secs), zxid: leader << LEADER_SHIFT | number }
    }

    #[test]
    fn time_advances_between_requests_and_never_goes_back() {
        let (clock, start) = (LeaderClock::default(), time::Instant::now());
        let observe = |stat: &ZnodeStat| clock.observe(stat, start, start);
        assert_eq!(clock.lower_bound(start), None);
        assert_eq!(observe(&stat(1, 5, 100)), Instant::from_secs(100));
        assert_eq!(clock.lower_bound(start + Duration::from_secs(7)), Some(Instant::from_secs(107)));
        assert_eq!(observe(&stat(1, 4, 300)), Instant::from_secs(300));
        assert_eq!(clock.lower_bound(start), Some(Instant::from_secs(100)), "an earlier reply arrived late");
        assert_eq!(clock.setback(start), Some(Span::from_secs(200)));
        assert_eq!(observe(&stat(2, 1, 50)), Instant::from_secs(300), "another leader has another clock");
        assert_eq!(clock.lower_bound(start), Some(Instant::from_secs(50)));
        assert_eq!(clock.setback(start + Duration::from_secs(250)), None);
    }

    #[test]
    fn locks_of_an_earlier_leader_count_from_the_new_one() {
        let (clock, start, ttl) = (LeaderClock::default(), time::Instant::now(), Span::from_secs(10));
        clock.observe(&stat(1, 5, 100), start, start);
        assert_eq!(clock.end_of_lock(&stat(1, 4, 95), ttl), Instant::from_secs(105));
        assert!(clock.covers(&stat(1, 4, 95), start) && clock.covers(&stat(1, 6, 101), start));
        assert!(!clock.covers(&stat(2, 1, 500), start));
        // The clock of the new leader is far ahead.
        clock.observe(&stat(2, 3, 500), start, start);
        assert!(clock.covers(&stat(2, 1, 500), start));
        assert_eq!(clock.end_of_lock(&stat(1, 4, 95), ttl), Instant::from_secs(510));
        assert_eq!(clock.end_of_lock(&stat(2, 1, 499), ttl), Instant::from_secs(509));
    }

    #[test]
    fn locks_stay_held_if_the_clock_of_the_leader_is_set_back() {
        let (clock, start, ttl) = (LeaderClock::default(), time::Instant::now(), Span::from_secs(10));
        clock.observe(&stat(1, 5, HOUR), start, start);
        // A lock is taken before the step and one after it. This process has not noticed the step yet.
        let later = start + Duration::from_secs(20);
        let (before, after) = (stat(1, 6, HOUR + 19), stat(1, 7, 20));
        assert!(!clock.covers(&before, later), "the clock may have been set back since the last reply");
        assert!(!clock.covers(&after, start), "the clock was set back");
        clock.observe(&stat(1, 8, 20), later, later);
        let is_held = |stat: &ZnodeStat, secs: u64| {
            let now = clock.lower_bound(later + Duration::from_secs(secs)).expect("it was observed");
            now < clock.end_of_lock(stat, ttl)
        };
        for lock in [before, after, stat(1, 8, 20), stat(1, 9, 20)] {
            assert!(is_held(&lock, 9) && !is_held(&lock, 10), "{lock:?}");
        }
        assert_eq!(clock.setback(later), Some(Span::from_secs(HOUR as u64 - 20)));
    }

    #[test]
    fn locks_stay_held_if_the_clock_of_the_leader_is_set_forward() {
        let (clock, start, ttl) = (LeaderClock::default(), time::Instant::now(), Span::from_secs(10));
        clock.observe(&stat(1, 5, 100), start, start);
        let later = start + Duration::from_secs(5);
        // One lock is taken before the step and one after it. This process has not noticed the step yet.
        let (before, after) = (stat(1, 6, 104), stat(1, 7, HOUR + 105));
        assert!(!clock.covers(&before, later), "the clock may have been set since the last reply");
        clock.observe(&stat(1, 8, HOUR + 105), later, later);
        for lock in [before, after, stat(1, 8, HOUR + 105)] {
            assert_eq!(clock.end_of_lock(&lock, ttl), Instant::from_secs(HOUR + 115), "{lock:?}");
        }
        assert_eq!(clock.setback(later), None);
        // The next observation is in the same term, so a lock that is not renewed expires.
        let end = later + Duration::from_secs(10);
        clock.observe(&stat(1, 9, HOUR + 115), end, end);
        assert_eq!(clock.end_of_lock(&before, ttl), Instant::from_secs(HOUR + 115));
    }

    #[test]
    fn drift_between_the_clocks_does_not_add_up() {
        let (clock, start, ttl) = (LeaderClock::default(), time::Instant::now(), Span::from_secs(10));
        // The clock of the leader has 0.9999 of the local rate, for a day with a reply every minute, and then 1.0005 of it,
        // with a reply every hour.
        let minutes = (0..=24 * 60).map(|minute| (minute, minute * 59_994));
        let hours = (1..=24).map(|hour| ((24 + hour) * 60, 24 * 60 * 59_994 + hour * 3_601_800));
        for (number, (minute, millis)) in minutes.chain(hours).enumerate() {
            let number = i64::try_from(number).expect("a small number");
            let modified = Instant::from_millis(millis);
            let stat = ZnodeStat { version: 1, modified, zxid: number + 1 };
            let now = start + Duration::from_secs(60 * i64::unsigned_abs(minute));
            clock.observe(&stat, now, now);
            assert_eq!(clock.lower_bound(now), Some(modified));
            let earlier = ZnodeStat { zxid: 1, ..stat };
            assert_eq!(clock.end_of_lock(&earlier, ttl), modified.plus(ttl), "no term has begun");
            assert_eq!(clock.setback(now), None);
        }
    }

    #[test]
    fn slow_reply_is_not_a_step_of_the_clock() {
        let (clock, start, ttl) = (LeaderClock::default(), time::Instant::now(), Span::from_secs(10));
        clock.observe(&stat(1, 5, 100), start, start);
        clock.observe(&stat(1, 7, 102), start + Duration::from_secs(2), start + Duration::from_secs(9));
        assert_eq!(clock.end_of_lock(&stat(1, 6, 101), ttl), Instant::from_secs(111));
    }
}
