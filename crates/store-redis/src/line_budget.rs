//! How many lines of outputs a process may write for Cronken's clients. A line costs the server several microseconds, and
//! while it writes lines it serves no other request. The bytes of an output do not count: they are cheap.

use std::sync::Mutex;

use cronhold_store::lock_mutex;
use tokio::time::Instant;

/// Lines that one script call writes at most. The script has the same limit.
pub(crate) const LINES_PER_CALL: usize = 1_000;
/// Lines per second in the long run.
const LINES_PER_SECOND: f64 = 2_000.0;
/// Lines that may be written at once after a quiet time. More than Cronken's key keeps.
const LINES_BURST: f64 = 20_000.0;
/// The last lines of each piece are written also if the budget is spent. With pieces of limited number this is bounded.
const LINES_MIN: usize = 20;

/// A budget that refills with time.
#[derive(Debug)]
pub(crate) struct LineBudget(Mutex<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    available: f64,
    updated: Instant,
}

impl LineBudget {
    /// A full budget.
    pub(crate) fn new(now: Instant) -> Self {
        Self(Mutex::new(BudgetState { available: LINES_BURST, updated: now }))
    }

    /// How many of a piece's lines are written: all of them, or the last ones.
    pub(crate) fn take(&self, lines: usize, now: Instant) -> usize {
        let mut state = lock_mutex(&self.0);
        let passed = now.saturating_duration_since(state.updated).as_secs_f64();
        state.available = (state.available + passed * LINES_PER_SECOND).min(LINES_BURST);
        state.updated = now;
        let fits = state.available >= count(lines);
        let granted = if fits { lines } else { whole(state.available).clamp(LINES_MIN, LINES_PER_CALL).min(lines) };
        state.available = (state.available - count(granted)).max(0.0);
        granted
    }
}

#[expect(clippy::cast_precision_loss, reason = "a piece has far fewer lines than a float has integers")]
fn count(lines: usize) -> f64 {
    lines as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between zero and the burst")]
fn whole(lines: f64) -> usize {
    lines as usize
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn burst_is_written_whole_and_a_flood_only_in_part() {
        let start = Instant::now();
        let budget = LineBudget::new(start);
        assert_eq!([12_000, 8_000].map(|lines| budget.take(lines, start)), [12_000, 8_000]);
        assert_eq!([3, 5_000].map(|lines| budget.take(lines, start)), [3, LINES_MIN], "the last lines always");
        let later = start + Duration::from_millis(250);
        assert_eq!(budget.take(5_000, later), 500);
        let later = start + Duration::from_secs(2);
        assert_eq!(budget.take(5_000, later), LINES_PER_CALL, "one call is enough for a piece of a flood");
        let much_later = start + Duration::from_secs(3_600);
        assert_eq!(budget.take(20_000, much_later), 20_000);
        assert_eq!(budget.take(20_000, start), LINES_MIN, "a clock that is behind adds nothing");
    }

    /// A process whose programs write as fast as they can is limited, however long that takes.
    #[test]
    fn flood_is_limited_to_the_rate() {
        let start = Instant::now();
        let budget = LineBudget::new(start);
        let lines: usize = (0..6_000).map(|piece| budget.take(8_000, start + Duration::from_millis(10 * piece))).sum();
        assert!(lines <= 20_000 + 60 * 2_000 + 6_000 * LINES_MIN, "{lines} lines in a minute");
    }
}
