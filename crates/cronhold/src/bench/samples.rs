//! Measured values: durations with their percentiles, a stopwatch, and conversions for rates.

use cronhold_schedule::Span;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Durations in milliseconds, sorted.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleSet(Vec<f64>);

impl SampleSet {
    /// Sorts durations in milliseconds.
    pub fn new(mut millis: Vec<f64>) -> Self {
        millis.sort_by(f64::total_cmp);
        Self(millis)
    }

    /// The duration that this many percent of all do not exceed; 0 if there are none.
    pub fn percentile(&self, percent: usize) -> f64 {
        self.0.get(self.0.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0.0)
    }

    /// The median; 0 if there are none.
    pub fn median(&self) -> f64 {
        self.percentile(50)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// How many would fit into a second, one after the other; 0 if there are none.
    pub fn per_second(&self) -> f64 {
        let total: f64 = self.0.iter().sum();
        if total > 0.0 { number(self.0.len() as u64) * 1_000.0 / total } else { 0.0 }
    }
}

/// When a loop that measures ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopLimit {
    /// After this many rounds.
    Count(usize),
    /// After this time.
    Time(Span),
}

impl LoopLimit {
    /// Whether the loop ends after `count` rounds and the time of the stopwatch.
    pub fn is_reached(self, count: usize, since: Stopwatch) -> bool {
        match self {
            Self::Count(limit) => count >= limit,
            Self::Time(limit) => since.seconds() >= seconds(limit),
        }
    }
}

/// Measures elapsed time with a resolution of nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Timespec);

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self(clock_gettime(ClockId::Monotonic))
    }

    /// Milliseconds since the start.
    pub fn millis(self) -> f64 {
        self.seconds() * 1_000.0
    }

    /// Seconds since the start.
    pub fn seconds(self) -> f64 {
        let now = clock_gettime(ClockId::Monotonic);
        let nanos = (now.tv_sec - self.0.tv_sec) * 1_000_000_000 + (now.tv_nsec - self.0.tv_nsec);
        number(nanos.unsigned_abs()) / 1e9
    }
}

/// Seconds of a span, for rates.
pub fn seconds(span: Span) -> f64 {
    number(span.micros()) / 1e6
}

/// A count, for rates.
#[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
pub fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_rate_of_samples() {
        let samples = SampleSet::new((1..=100).rev().map(f64::from).collect());
        assert_eq!([0, 50, 99, 100].map(|percent| samples.percentile(percent)), [1.0, 50.0, 99.0, 100.0]);
        assert_eq!(SampleSet::new(vec![2.0, 6.0]).per_second(), 250.0);
        let none = SampleSet::new(Vec::new());
        assert_eq!((none.median(), none.per_second(), none.count()), (0.0, 0.0, 0));
    }
}
