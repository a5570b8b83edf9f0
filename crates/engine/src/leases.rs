//! How long the programs of a node may live: until shortly before others may believe that it is gone, and before someone
//! else may have the lock that they run under. Counted from when a renewal was sent, not from when it was answered.

use cronhold_core::policy::lease::{STALE_MIN, margin};
use cronhold_core::record::LockName;
use cronhold_schedule::Span;

/// Of a lease that is no longer than this every extension is told: a daemon that is started again has little time to
/// extend it itself.
const SHORT: Span = Span::from_secs(15);

/// The lease of a program.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    span: Span,
    lock: Option<LockName>,
    /// When its lock was last taken or renewed: the sending of what did so. Unknown for what an earlier life has taken.
    taken: Option<Span>,
    /// Until when its program was last said to live.
    told: Option<Span>,
}

impl Lease {
    pub(crate) fn new(span: Span, lock: Option<LockName>) -> Self {
        Self { span, lock, taken: None, told: None }
    }

    /// The lock that it is for.
    pub(crate) fn lock(&self) -> Option<&LockName> {
        self.lock.as_ref()
    }

    /// How long its lock is held without being renewed.
    pub(crate) fn of_lock(&self) -> Option<Span> {
        self.lock.as_ref().map(|_| self.span)
    }

    /// Its lock was taken or renewed by something that was sent then.
    pub(crate) fn taken(&mut self, sent: Span) {
        self.taken = self.taken.max(Some(sent));
    }

    /// Until when its program may live, which is told to whoever has the program. `answered` is when the last beat was
    /// sent that the store has answered.
    pub(crate) fn tell(&mut self, answered: Option<Span>) -> Option<Span> {
        self.told = self.kill_at(answered);
        self.told
    }

    /// The same, if what was told last is not good for long any more.
    pub(crate) fn worth_telling(&mut self, answered: Option<Span>, uptime: Span) -> Option<Span> {
        let kill_at = self.kill_at(answered)?;
        let span = self.span.max(STALE_MIN);
        let enough = if span <= SHORT { span } else { Span::from_micros(span.micros() / 3 * 2) };
        let is_short = self.told.is_none_or(|told| told < kill_at && told.minus(uptime) < enough);
        is_short.then(|| self.tell(answered)).flatten()
    }

    fn kill_at(&self, answered: Option<Span>) -> Option<Span> {
        let of_node = answered?.plus(self.span.max(STALE_MIN));
        let end = match (&self.lock, self.taken) {
            (None, _) => of_node,
            (Some(_), Some(taken)) => of_node.min(taken.plus(self.span)),
            // Nothing is known of its lock until a beat has renewed it.
            (Some(_), None) => return None,
        };
        Some(end.minus(margin(self.span)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    fn millis(span: Option<Span>) -> Option<u64> {
        span.map(Span::millis)
    }

    #[test]
    fn without_a_lock_the_node_counts() {
        let mut lease = Lease::new(up(45_000), None);
        assert_eq!(lease.tell(None), None, "no beat was answered yet");
        lease.taken(up(9_000));
        assert_eq!(millis(lease.tell(Some(up(5_000)))), Some(49_500));
        assert_eq!(lease.worth_telling(Some(up(7_000)), up(8_000)), None, "that is good for long enough");
        assert_eq!(millis(lease.worth_telling(Some(up(21_000)), up(22_000))), Some(65_500));
        assert_eq!(lease.worth_telling(Some(up(21_000)), up(62_000)), None, "nothing later can be told");
    }

    #[test]
    fn under_a_lock_both_count() {
        let lock = LockName::parse("blue").expect("a name");
        let mut lease = Lease::new(up(10_000), Some(lock.clone()));
        assert_eq!(lease.tell(Some(up(5_000))), None, "nobody knows yet whether the lock is held");
        lease.taken(up(6_000));
        assert_eq!(millis(lease.tell(Some(up(5_000)))), Some(14_500), "the beat is older");
        lease.taken(up(4_000));
        assert_eq!(millis(lease.tell(Some(up(9_000)))), Some(15_500), "a renewal that comes late changes nothing");
        assert_eq!(millis(lease.worth_telling(Some(up(11_000)), up(11_010))), None, "its lock was not renewed");
        lease.taken(up(11_000));
        assert_eq!(millis(lease.worth_telling(Some(up(11_000)), up(11_010))), Some(20_500), "every second counts");
        // However short the lock, a node is given some beats, but the lock is not.
        let mut short = Lease::new(up(2_000), Some(lock));
        short.taken(up(1_000));
        assert_eq!(millis(short.tell(Some(up(1_000)))), Some(2_500));
    }
}
