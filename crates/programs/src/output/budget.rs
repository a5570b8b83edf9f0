//! How many bytes of outputs a node may send to its store. The budget refills with time, and a piece is sent whole once
//! the budget is positive, so it may be overdrawn by one piece.

use cronhold_schedule::Span;

/// Bytes per second in the long run, for a store that nodes share and for one of a single node.
const SHARED_BYTES_PER_SECOND: i64 = 8 << 20;
const OWN_BYTES_PER_SECOND: i64 = 32 << 20;
/// Bytes that may be sent at once after a quiet time.
const BYTES_BURST: i64 = 1 << 20;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// The bytes that may be sent now.
#[derive(Debug)]
pub(super) struct OutputBudget {
    bytes_per_second: i64,
    available: i64,
    /// The uptime up to which the refill is counted.
    updated: Span,
}

impl OutputBudget {
    /// A full budget for a store that nodes share, or for one of a single node.
    pub(super) fn new(uptime: Span, is_shared: bool) -> Self {
        let bytes_per_second = if is_shared { SHARED_BYTES_PER_SECOND } else { OWN_BYTES_PER_SECOND };
        Self { bytes_per_second, available: BYTES_BURST, updated: uptime }
    }

    /// Adds what has become available until now.
    pub(super) fn refill(&mut self, uptime: Span) {
        let passed = i64::try_from(uptime.minus(self.updated).micros()).unwrap_or(i64::MAX);
        let added = passed.saturating_mul(self.bytes_per_second) / MICROS_PER_SECOND;
        self.available = self.available.saturating_add(added).min(BYTES_BURST);
        self.updated = uptime;
    }

    /// How long nothing may be sent; `None` if the budget is not spent.
    pub(super) fn wait(&self) -> Option<Span> {
        let missing = 1 - self.available;
        let micros = missing.max(0) * MICROS_PER_SECOND / self.bytes_per_second;
        (missing > 0).then(|| Span::from_micros(micros.cast_unsigned() + 1))
    }

    /// A piece of this length is sent.
    pub(super) fn spend(&mut self, bytes: usize) {
        self.available = self.available.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_limits_bytes_per_second() {
        let mut uptime = Span::from_secs(9);
        let mut budget = OutputBudget::new(uptime, true);
        let mut sent: usize = 0;
        while uptime < Span::from_secs(19) {
            budget.refill(uptime);
            match budget.wait() {
                Some(wait) => uptime = uptime.plus(wait),
                None => {
                    budget.spend(64 * 1024);
                    sent += 64 * 1024;
                }
            }
        }
        let full = 10 * (8 << 20);
        assert!((full..=full + (1 << 20) + 64 * 1024).contains(&sent), "{sent} bytes in ten seconds");
        budget.refill(Span::from_secs(4_000));
        assert_eq!(budget.available, BYTES_BURST);
    }
}
