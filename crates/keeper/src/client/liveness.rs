//! Whether the keeper at the other end of a connection responds. A keeper that hangs keeps its connection open, so only
//! the absence of messages shows it. Every message counts as a sign of life, because a busy keeper answers late.

use std::time::Duration;

/// How often the keeper is asked for a sign of life.
const PING_EVERY: Duration = Duration::from_secs(1);
/// A keeper that has sent nothing for this long after a ping does not respond. Programs may be launched for twice as
/// long, so a shorter delay of a disk costs no run.
const SILENT_AFTER: Duration = Duration::from_secs(5);

/// Decides when to ping a keeper, and when it counts as silent. Times are on a clock that stands still while the machine
/// is suspended.
#[derive(Debug)]
pub(super) struct Liveness {
    /// `None` for a keeper that does not understand pings.
    next_ping: Option<Duration>,
    /// When the oldest ping was sent that no message has followed.
    unanswered: Option<Duration>,
    is_silent: bool,
}

impl Liveness {
    pub(super) fn new(understands_pings: bool, now: Duration) -> Self {
        let next_ping = understands_pings.then_some(now + PING_EVERY);
        Self { next_ping, unanswered: None, is_silent: false }
    }

    /// Whether a ping has to be sent now. It counts as sent.
    pub(super) fn take_ping(&mut self, now: Duration) -> bool {
        let is_due = self.unanswered.is_none() && self.next_ping.is_some_and(|next| next <= now);
        if is_due {
            self.next_ping = Some(now + PING_EVERY);
            self.unanswered = Some(now);
        }
        is_due
    }

    /// The keeper sent something.
    pub(super) fn record_message(&mut self) {
        (self.unanswered, self.is_silent) = (None, false);
    }

    /// Whether the keeper has become silent. True once, until it sends something.
    pub(super) fn take_silence(&mut self, now: Duration) -> bool {
        let is_overdue = self.unanswered.is_some_and(|sent| now >= sent + SILENT_AFTER);
        is_overdue && !std::mem::replace(&mut self.is_silent, true)
    }

    /// How long to wait for a message at most; `None` for as long as it takes.
    pub(super) fn wait(&self, now: Duration) -> Option<Duration> {
        let due = match self.unanswered {
            Some(_) if self.is_silent => return None,
            Some(sent) => sent + SILENT_AFTER,
            None => self.next_ping?,
        };
        Some(due.saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn keeper_without_an_answer_is_silent_until_its_next_message() {
        let mut liveness = Liveness::new(true, secs(10));
        assert!(!liveness.take_ping(secs(10)));
        assert_eq!(liveness.wait(secs(10)), Some(PING_EVERY));
        assert!(liveness.take_ping(secs(11)) && !liveness.take_ping(secs(12)), "one ping at a time");
        assert_eq!(liveness.wait(secs(13)), Some(secs(3)));
        assert!(!liveness.take_silence(secs(15)));
        assert!(liveness.take_silence(secs(16)) && !liveness.take_silence(secs(17)));
        assert_eq!(liveness.wait(secs(17)), None);
        liveness.record_message();
        assert!(!liveness.take_silence(secs(30)) && liveness.take_ping(secs(30)));
    }

    #[test]
    fn keeper_of_an_older_protocol_gets_no_pings() {
        let mut liveness = Liveness::new(false, secs(10));
        assert!(!liveness.take_ping(secs(99)) && !liveness.take_silence(secs(99)));
        assert_eq!(liveness.wait(secs(99)), None);
    }
}
