//! The parts of `cronhold bench` in their order, and how its time is divided among them.

use cronhold_schedule::Span;

/// Seconds that starting nodes, putting jobs and waiting for the first due time take in all.
const OVERHEAD_SECONDS: u32 = 7;
/// The share of the planned times that even the shortest benchmark has.
const SCALE_MIN: f64 = 0.05;
/// Seconds of measuring for which the times in this file are planned.
const PLANNED_SECONDS: f64 = 35.0;

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BenchStage {
    Store,
    Timers,
    Spawns,
    Claims,
    Requests,
    Schedules,
    DueAtOnce,
    ProcessRate,
    StartDelays,
}

/// All parts in their order.
const STAGES: [BenchStage; 9] = [
    BenchStage::Store,
    BenchStage::Timers,
    BenchStage::Spawns,
    BenchStage::Claims,
    BenchStage::Requests,
    BenchStage::Schedules,
    BenchStage::DueAtOnce,
    BenchStage::ProcessRate,
    BenchStage::StartDelays,
];

impl BenchStage {
    /// What is measured, for the progress line.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Store => "the store",
            Self::Timers => "timers",
            Self::Spawns => "bare programs",
            Self::Claims => "claims, one at a time",
            Self::Requests => "no-op runs on request",
            Self::Schedules => "no-op runs by schedules",
            Self::DueAtOnce => "1,000 jobs due at once",
            Self::ProcessRate => "process runs",
            Self::StartDelays => "start lateness of processes",
        }
    }

    /// The name of its store and its directory.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Timers => "timers",
            Self::Spawns => "spawns",
            Self::Claims => "claims",
            Self::Requests => "requests",
            Self::Schedules => "schedules",
            Self::DueAtOnce => "due-at-once",
            Self::ProcessRate => "process-rate",
            Self::StartDelays => "start-delays",
        }
    }

    /// Milliseconds of measuring in the planned time, without preparations.
    fn planned_millis(self) -> u32 {
        match self {
            Self::Timers => 1_500,
            Self::Store | Self::Spawns | Self::Claims => 2_500,
            Self::Requests | Self::Schedules | Self::DueAtOnce | Self::ProcessRate => 5_000,
            Self::StartDelays => 6_000,
        }
    }
}

/// How the time of a benchmark is divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct StageTimes {
    scale: f64,
}

impl StageTimes {
    /// For a benchmark that takes about this long in all.
    pub(super) fn new(seconds: u32) -> Self {
        let measuring = f64::from(seconds.saturating_sub(OVERHEAD_SECONDS));
        Self { scale: (measuring / PLANNED_SECONDS).max(SCALE_MIN) }
    }

    /// How long a stage measures.
    pub(super) fn span(self, stage: BenchStage) -> Span {
        Span::from_micros(rounded(f64::from(stage.planned_millis()) * 1_000.0 * self.scale) as u64)
    }

    /// The warm-up of a stage, during which nothing counts.
    pub(super) fn warm_up(self, stage: BenchStage) -> Span {
        Span::from_micros(self.span(stage).micros() / 6)
    }

    /// How far the benchmark is in a stage, in thousandths of all stages; `elapsed` is the time since its begin.
    pub(super) fn progress(self, stage: BenchStage, elapsed: Span) -> u64 {
        let before: u32 = STAGES.iter().take_while(|other| **other != stage).map(|other| other.planned_millis()).sum();
        let all: u32 = STAGES.iter().map(|stage| stage.planned_millis()).sum();
        let span = self.span(stage).micros().max(1);
        let inside = u64::from(stage.planned_millis()) * elapsed.micros().min(span) / span;
        (u64::from(before) + inside) * 1_000 / u64::from(all)
    }
}

/// A positive number as an integer.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive, and saturates")]
pub(super) fn rounded(value: f64) -> usize {
    value.round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_share_the_time() {
        for (seconds, least, most) in [(5, 1, 3), (20, 12, 15), (40, 31, 35), (100, 90, 97)] {
            let times = StageTimes::new(seconds);
            let all = STAGES.iter().fold(Span::ZERO, |all, stage| all.plus(times.span(*stage)));
            assert!((least..=most).contains(&all.secs()), "{seconds}: {all}");
        }
    }

    #[test]
    fn progress_grows_from_stage_to_stage() {
        let times = StageTimes::new(40);
        let mut last = None;
        for stage in STAGES {
            for elapsed in [Span::ZERO, Span::from_millis(500), Span::from_secs(60)] {
                let progress = Some(times.progress(stage, elapsed));
                assert!(progress >= last, "{stage:?} after {elapsed}");
                last = progress;
            }
        }
        assert_eq!(last, Some(1_000));
        assert_eq!(times.progress(BenchStage::Store, Span::ZERO), 0);
    }
}
