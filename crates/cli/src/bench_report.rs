//! The result of `cronhold bench`: figures with stable names. The binary measures them, `render` prints them.

use serde::Serialize;

/// What a value of a benchmark is. Its name, its unit and its meaning never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BenchFigure {
    /// Durable writes per second, one after the other.
    FsyncPerSecond,
    /// Duration of a durable write.
    FsyncMedian,
    /// Duration of a durable write.
    FsyncP99,
    /// Duration of the smallest request to a store on a server.
    RoundTripMedian,
    /// Duration of the smallest request to a store on a server.
    RoundTripP99,
    /// How late a timer expires.
    TimerLateMedian,
    /// How late a timer expires.
    TimerLateP99,
    /// Programs per second that a bare loop starts and waits for.
    SpawnPerSecond,
    /// Time from a request until one claim alone is durable.
    ClaimMedian,
    /// Time from a request until one claim alone is durable.
    ClaimP99,
    /// No-op runs per second that are requested as fast as the node accepts them.
    RequestedRunsPerSecond,
    /// No-op runs per second of schedules that are due more often than the node can run them.
    ScheduledRunsPerSecond,
    /// Time until the claims of 1,000 jobs due at one instant are durable.
    DueAtOnceMedian,
    /// Time until the claims of 1,000 jobs due at one instant are durable.
    DueAtOnceP99,
    /// Runs of real processes per second.
    ProcessRunsPerSecond,
    /// Runs of real processes per second, as a part of the bare loop's.
    ProcessRunsOfSpawn,
    /// Time from when a process is due until the node records that it runs.
    ProcessStartLateMedian,
    /// Time from when a process is due until the node records that it runs.
    ProcessStartLateP99,
}

impl BenchFigure {
    /// All figures, in the order of the output.
    pub const ALL: [Self; 18] = [
        Self::FsyncPerSecond,
        Self::FsyncMedian,
        Self::FsyncP99,
        Self::RoundTripMedian,
        Self::RoundTripP99,
        Self::TimerLateMedian,
        Self::TimerLateP99,
        Self::SpawnPerSecond,
        Self::ClaimMedian,
        Self::ClaimP99,
        Self::RequestedRunsPerSecond,
        Self::ScheduledRunsPerSecond,
        Self::DueAtOnceMedian,
        Self::DueAtOnceP99,
        Self::ProcessRunsPerSecond,
        Self::ProcessRunsOfSpawn,
        Self::ProcessStartLateMedian,
        Self::ProcessStartLateP99,
    ];

    /// Its name in JSON and YAML.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        self.facts().1
    }

    /// What it is, for people.
    pub(crate) fn label(self) -> &'static str {
        self.facts().2
    }

    /// Name, unit and label.
    fn facts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::FsyncPerSecond => ("fsync_per_second", "/s", "durable writes of 512 bytes"),
            Self::FsyncMedian => ("fsync_median", "ms", "durable write, median"),
            Self::FsyncP99 => ("fsync_p99", "ms", "durable write, p99"),
            Self::RoundTripMedian => ("round_trip_median", "ms", "round trip to the store, median"),
            Self::RoundTripP99 => ("round_trip_p99", "ms", "round trip to the store, p99"),
            Self::TimerLateMedian => ("timer_late_median", "ms", "timer late, median"),
            Self::TimerLateP99 => ("timer_late_p99", "ms", "timer late, p99"),
            Self::SpawnPerSecond => ("spawn_per_second", "/s", "programs in a bare loop, 64 in flight"),
            Self::ClaimMedian => ("claim_median", "ms", "one claim alone until durable, median"),
            Self::ClaimP99 => ("claim_p99", "ms", "one claim alone until durable, p99"),
            Self::RequestedRunsPerSecond => ("requested_runs_per_second", "/s", "no-op runs on request"),
            Self::ScheduledRunsPerSecond => ("scheduled_runs_per_second", "/s", "no-op runs by schedules"),
            Self::DueAtOnceMedian => ("due_at_once_median", "ms", "1,000 jobs due at once, recorded, median"),
            Self::DueAtOnceP99 => ("due_at_once_p99", "ms", "1,000 jobs due at once, recorded, p99"),
            Self::ProcessRunsPerSecond => ("process_runs_per_second", "/s", "process runs, fully recorded"),
            Self::ProcessRunsOfSpawn => ("process_runs_of_spawn", "%", "process runs compared with the bare loop"),
            Self::ProcessStartLateMedian => {
                ("process_start_late_median", "ms", "process start late, up to 100 a second, median")
            }
            Self::ProcessStartLateP99 => {
                ("process_start_late_p99", "ms", "process start late, up to 100 a second, p99")
            }
        }
    }
}

/// The result of a benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchReport {
    /// The store that was measured.
    pub(crate) store: String,
    /// The directory in which it worked.
    pub(crate) directory: String,
    values: Vec<(BenchFigure, f64)>,
    /// What the store warns about.
    pub(crate) warnings: Vec<String>,
}

/// A figure in JSON and YAML.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct BenchRow {
    what: &'static str,
    value: f64,
    unit: &'static str,
}

impl BenchReport {
    /// Without any figure.
    pub fn new(store: impl Into<String>, directory: impl Into<String>) -> Self {
        Self { store: store.into(), directory: directory.into(), values: Vec::new(), warnings: Vec::new() }
    }

    /// Adds a figure, in its unit.
    pub fn set(&mut self, figure: BenchFigure, value: f64) {
        self.values.push((figure, value));
    }

    /// Sets what the store warns about.
    pub fn set_warnings(&mut self, warnings: Vec<String>) {
        self.warnings = warnings;
    }

    /// The value of a figure; `None` if it was not measured.
    pub fn value(&self, figure: BenchFigure) -> Option<f64> {
        self.values.iter().find(|(other, _)| *other == figure).map(|(_, value)| *value)
    }

    /// All figures that were measured, in the order of [`BenchFigure::ALL`].
    pub(crate) fn figures(&self) -> impl Iterator<Item = (BenchFigure, f64)> {
        BenchFigure::ALL.into_iter().filter_map(|figure| Some((figure, self.value(figure)?)))
    }

    /// The figures for programs, with four significant digits.
    pub(crate) fn rows(&self) -> Vec<BenchRow> {
        let row = |(figure, value)| BenchRow {
            what: BenchFigure::name(figure),
            value: shortened(value),
            unit: figure.unit(),
        };
        self.figures().map(row).collect()
    }
}

/// Four significant digits: the others differ from one call to the next.
fn shortened(value: f64) -> f64 {
    if value > 0.0 && value.is_finite() { format!("{value:.3e}").parse().unwrap_or(value) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_figure_has_a_name_of_its_own_and_is_documented() {
        let document = include_str!("../../../docs/benchmarks.md");
        let names: BTreeSet<&str> = BenchFigure::ALL.iter().map(|figure| figure.name()).collect();
        assert_eq!(names.len(), BenchFigure::ALL.len());
        for figure in BenchFigure::ALL {
            let name = figure.name();
            assert!(
                name.chars().all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '_'),
                "{name}"
            );
            assert!(document.contains(&format!("| `{name}` | {} |", figure.unit())), "docs/benchmarks.md lacks {name}");
        }
    }

    #[test]
    fn values_have_four_significant_digits() {
        for (value, expected) in [
            (0.0, 0.0),
            (0.000_412_345, 0.000_412_3),
            (1.234_56, 1.235),
            (12_345.6, 12_350.0),
            (f64::NAN, 0.0),
            (f64::INFINITY, 0.0),
        ] {
            assert_eq!(shortened(value), expected, "{value}");
        }
    }
}
