//! Many jobs that are due at one instant: the time until each is claimed and recorded.

use std::collections::BTreeMap;

use cronhold_cli::CliError;
use cronhold_schedule::{Instant, Span};

use super::node::BenchNode;
use super::samples::{SampleSet, number};

const POLL_INTERVAL: Span = Span::from_millis(100);

/// The delays of jobs at several instants.
#[derive(Debug)]
pub struct BurstDelays(Vec<SampleSet>);

impl BurstDelays {
    /// The delay in milliseconds that this many percent of the jobs of an instant do not exceed: the median of all
    /// instants. On a machine with other load, the median says more than the worst instant.
    pub fn percentile(&self, percent: usize) -> f64 {
        SampleSet::new(self.0.iter().map(|instant| instant.percentile(percent)).collect()).median()
    }

    /// The longest delay of all, in milliseconds.
    pub fn worst(&self) -> f64 {
        self.0.iter().map(|instant| instant.percentile(100)).fold(0.0, f64::max)
    }
}

/// Puts `jobs` jobs that are all due every `every` seconds, and measures `rounds` instants after a first one.
pub async fn measure_bursts(
    node: &BenchNode,
    jobs: usize,
    every: usize,
    rounds: usize,
) -> Result<BurstDelays, CliError> {
    let yaml = format!("program: {{noop: true}}\noverlap: allow\nschedule: {{every: {every}s}}\n");
    node.put_jobs(jobs, |_| yaml.clone()).await?;
    let mut instants: BTreeMap<Instant, Vec<f64>> = BTreeMap::new();
    loop {
        for (nominal, at) in node.recorder.take_starts() {
            instants.entry(nominal).or_default().push(number(at.since(nominal).micros()) / 1_000.0);
        }
        // Instants that passed while the jobs were put are incomplete.
        let complete = instants.values().filter(|late| late.len() == jobs);
        if complete.clone().count() > rounds {
            return Ok(BurstDelays(complete.skip(1).take(rounds).cloned().map(SampleSet::new).collect()));
        }
        node.clock.sleep(POLL_INTERVAL).await;
    }
}
