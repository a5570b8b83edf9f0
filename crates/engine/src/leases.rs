//! How long the programs of a node may live: until shortly before other nodes may take the node for gone, and before
//! another run may hold the lock of the program. All times are measured from when a renewal was sent, never from when the
//! store answered.

use cronhold_core::policy::lease::{STALE_MIN, margin};
use cronhold_core::record::LockName;
use cronhold_schedule::Span;

/// A lease that is no longer than this is extended with every heartbeat, because a daemon that restarts has little time to
/// extend it.
const SHORT_MAX: Span = Span::from_secs(15);

/// The lease of a program.
#[derive(Debug, Clone)]
pub(crate) struct ProgramLease {
    span: Span,
    lock: Option<LockName>,
    /// The uptime at which the last successful renewal of the lock was sent; `None` if an earlier process took the lock
    /// and this one has not renewed it.
    renewed: Option<Span>,
    /// The end of the lease that the program runner was last given.
    granted: Option<Span>,
}

impl ProgramLease {
    pub(crate) fn new(span: Span, lock: Option<LockName>) -> Self {
        Self { span, lock, renewed: None, granted: None }
    }

    /// The lock that the program runs under.
    pub(crate) fn lock(&self) -> Option<&LockName> {
        self.lock.as_ref()
    }

    /// How long the lock is held without being renewed; `None` if there is no lock.
    pub(crate) fn lock_ttl(&self) -> Option<Span> {
        self.lock.as_ref().map(|_| self.span)
    }

    /// Records that the lock was taken or renewed by a request sent at an uptime.
    pub(crate) fn record_renewal(&mut self, sent: Span) {
        self.renewed = self.renewed.max(Some(sent));
    }

    /// Extends the lease as far as possible, and returns its end; `None` if it is unknown how long the program may live.
    /// `answered` is when the last heartbeat was sent that the store has answered.
    pub(crate) fn extend(&mut self, answered: Option<Span>) -> Option<Span> {
        self.granted = self.kill_at(answered);
        self.granted
    }

    /// Extends the lease if the last extension ends soon. Returns the new end if there is one.
    pub(crate) fn extend_if_short(&mut self, answered: Option<Span>, uptime: Span) -> Option<Span> {
        let kill_at = self.kill_at(answered)?;
        let span = self.span.max(STALE_MIN);
        let enough =
            if span <= SHORT_MAX { span } else { Span::from_micros(span.micros() / 3 * 2).max(span.minus(SHORT_MAX)) };
        let is_short = self.granted.is_none_or(|granted| granted < kill_at && granted.minus(uptime) < enough);
        is_short.then(|| self.extend(answered)).flatten()
    }

    fn kill_at(&self, answered: Option<Span>) -> Option<Span> {
        let of_node = answered?.plus(self.span.max(STALE_MIN));
        let end = match (&self.lock, self.renewed) {
            (None, _) => of_node,
            (Some(_), Some(renewed)) => of_node.min(renewed.plus(self.span)),
            // The holder of the lock is unknown until a heartbeat has renewed it.
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
    fn lease_without_a_lock_ends_with_the_heartbeats() {
        let mut lease = ProgramLease::new(up(45_000), None);
        assert_eq!(lease.extend(None), None, "no heartbeat was answered yet");
        lease.record_renewal(up(9_000));
        assert_eq!(millis(lease.extend(Some(up(5_000)))), Some(49_500));
        assert_eq!(lease.extend_if_short(Some(up(7_000)), up(8_000)), None, "the extension is long enough");
        assert_eq!(millis(lease.extend_if_short(Some(up(21_000)), up(22_000))), Some(65_500));
        assert_eq!(lease.extend_if_short(Some(up(21_000)), up(62_000)), None, "no later end is possible");
    }

    /// An outage may begin at any time, and the program must then have nearly its whole lease before it.
    #[test]
    fn long_lease_is_kept_nearly_whole() {
        let mut lease = ProgramLease::new(Span::from_secs(600), None);
        let mut granted = lease.extend(Some(up(0)));
        for second in (2..900).step_by(2) {
            let uptime = Span::from_secs(second);
            granted = lease.extend_if_short(Some(uptime), uptime).or(granted);
            let rest = granted.expect("a lease").minus(uptime);
            assert!(rest >= Span::from_secs(600 - 15 - 3), "{rest} are left after {uptime}");
        }
    }

    #[test]
    fn lease_under_a_lock_ends_with_the_lock_or_the_heartbeats() {
        let lock = LockName::parse("blue").expect("a name");
        let mut lease = ProgramLease::new(up(10_000), Some(lock.clone()));
        assert_eq!(lease.extend(Some(up(5_000))), None, "it is unknown whether the lock is held");
        lease.record_renewal(up(6_000));
        assert_eq!(millis(lease.extend(Some(up(5_000)))), Some(14_500), "the heartbeat is older");
        lease.record_renewal(up(4_000));
        assert_eq!(millis(lease.extend(Some(up(9_000)))), Some(15_500), "an older renewal changes nothing");
        assert_eq!(millis(lease.extend_if_short(Some(up(11_000)), up(11_010))), None, "its lock was not renewed");
        lease.record_renewal(up(11_000));
        assert_eq!(
            millis(lease.extend_if_short(Some(up(11_000)), up(11_010))),
            Some(20_500),
            "short leases are extended each time"
        );
        // A node may miss some heartbeats however short its lock is, but the lock still expires.
        let mut short = ProgramLease::new(up(2_000), Some(lock));
        short.record_renewal(up(1_000));
        assert_eq!(millis(short.extend(Some(up(1_000)))), Some(2_500));
    }
}
