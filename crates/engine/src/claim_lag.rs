//! How late claims are at the moment. If many jobs are due at one instant, or more than the nodes can start, the first
//! node in the order of an item lives and is late all the same. The nodes after it would claim the item as well, and most
//! of that work would be refused. So they wait longer by as much as claims are late, their own and those of others.

use cronhold_schedule::Span;

/// For how long a measured lateness counts. If no claim is late for this long, the first node is gone.
const VALID: Span = Span::from_millis(500);
/// Claims that are less late than this are on time.
const ON_TIME: Span = Span::from_millis(10);
/// How much longer than the measured lateness a node waits, because lateness grows during a burst.
const MARGIN: Span = Span::from_millis(25);
/// A claim that is later than this was held up for another reason, for example by a pause.
const IGNORED: Span = Span::from_secs(30);

/// How late claims are at the moment. Times are uptimes of the node.
#[derive(Debug, Default)]
pub(crate) struct ClaimLag {
    lag: Span,
    valid_until: Span,
}

impl ClaimLag {
    /// A node has claimed something this late.
    pub(crate) fn observe(&mut self, lag: Span, uptime: Span) {
        if lag < ON_TIME || lag > IGNORED || lag < self.lag && uptime < self.valid_until {
            return;
        }
        (self.lag, self.valid_until) = (lag, uptime.plus(VALID));
    }

    /// How much longer this node leaves an item to the nodes before it.
    pub(crate) fn extra_wait(&self, uptime: Span) -> Span {
        if uptime < self.valid_until { self.lag.plus(MARGIN) } else { Span::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_follows_the_latest_claims_and_ends_after_them() {
        let ms = Span::from_millis;
        let mut lag = ClaimLag::default();
        assert_eq!(lag.extra_wait(ms(0)), Span::ZERO);
        for (at, late, expected) in [
            (1_000, 5, 0),
            (1_000, 40, 65),
            (1_100, 140, 165),
            (1_200, 20, 165),
            (1_599, 20, 165),
            (1_600, 20, 45),
            (1_700, 31_000, 45),
        ] {
            lag.observe(ms(late), ms(at));
            assert_eq!(lag.extra_wait(ms(at)), ms(expected), "{late} ms late at {at}");
        }
        assert_eq!(lag.extra_wait(ms(2_099)), ms(45));
        assert_eq!(lag.extra_wait(ms(2_100)), Span::ZERO, "no claim was late since");
    }
}
