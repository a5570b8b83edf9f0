//! Real programs under the keeper: how many the node runs per second, and how late they start.

use std::path::Path;
use std::sync::Arc;

use cronhold_cli::CliError;
use cronhold_core::State;
use cronhold_core::record::Run;
use cronhold_schedule::Instant;
use tokio::task::JoinSet;

use super::machine::IN_FLIGHT;
use super::node::{BenchNode, finish, job_id};
use super::samples::{LoopLimit, SampleSet, Stopwatch, number};

/// Runs a program without arguments again and again, 64 in flight. Returns how many runs ended per second, each fully
/// recorded. The first 64 do not count.
pub async fn measure_process_rate(node: &BenchNode, program: &Path, limit: LoopLimit) -> Result<f64, CliError> {
    let yaml = format!("program: [{}]\noverlap: allow\n", quoted(program));
    node.put_jobs(IN_FLIGHT, |_| yaml.clone()).await?;
    let mut requests = JoinSet::new();
    (0..IN_FLIGHT).for_each(|job| request(&mut requests, node, job));
    for run in node.recorder.collect_ended(IN_FLIGHT).await {
        check_success(&run)?;
    }
    (0..IN_FLIGHT).for_each(|job| request(&mut requests, node, job));
    let (begin, mut ended) = (Stopwatch::start(), 0);
    while !limit.is_reached(ended, begin) {
        let over = node.recorder.next_ended(IN_FLIGHT).await;
        for run in &over {
            check_success(run)?;
            request(&mut requests, node, ended % IN_FLIGHT);
            ended += 1;
        }
        while let Some(done) = requests.try_join_next() {
            finish(done)?;
        }
    }
    Ok(number(ended as u64) / begin.seconds())
}

fn request(requests: &mut JoinSet<Result<(), CliError>>, node: &BenchNode, job: usize) {
    let node = node.node.clone();
    requests.spawn(async move { BenchNode::run_once(&node, job_id(job)).await });
}

fn check_success(run: &Run) -> Result<(), CliError> {
    if run.state == State::Success {
        return Ok(());
    }
    let why = run.reason.as_ref().map_or_else(|| run.state.name().to_owned(), ToString::to_string);
    Err(CliError::refused(format!("a program of the benchmark failed: {why}"), "check the limits of this user"))
}

/// A path as a YAML text.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''"))
}

/// Jobs that are due regularly.
#[derive(Debug, Clone, Copy)]
pub struct DueJobs {
    /// The number of jobs.
    pub jobs: usize,
    /// Seconds between their occurrences.
    pub every: usize,
    /// Seconds of jitter.
    pub jitter: usize,
}

/// Puts jobs with a command line, given as a YAML list. Waits until each has run once, and then for `count` more runs.
/// Returns these with the times at which they were due.
pub async fn collect_due_runs(
    node: &BenchNode,
    command: &str,
    due: DueJobs,
    count: usize,
) -> Result<Vec<(Arc<Run>, Instant)>, CliError> {
    let DueJobs { jobs, every, jitter } = due;
    let schedule = format!("schedule: {{every: {every}s, jitter: {jitter}s}}");
    let yaml = format!("program: {command}\noverlap: allow\n{schedule}\n");
    node.put_jobs(jobs, |_| yaml.clone()).await?;
    // The first instant may have passed while jobs were put.
    node.recorder.collect_ended(jobs).await;
    let mut runs = Vec::with_capacity(count);
    for run in node.recorder.collect_ended(count).await {
        let due = node.due(&run).await?;
        runs.push((run, due));
    }
    Ok(runs)
}

/// How long after their due times the node recorded that these programs run.
pub fn recorded_delays(runs: &[(Arc<Run>, Instant)]) -> SampleSet {
    let recorded = runs.iter().filter_map(|(run, due)| Some(run.entered(State::Running)?.since(*due)));
    SampleSet::new(recorded.map(|late| number(late.micros()) / 1_000.0).collect())
}

/// The start delays of a program without arguments.
pub async fn measure_start_delays(
    node: &BenchNode,
    program: &Path,
    due: DueJobs,
    count: usize,
) -> Result<SampleSet, CliError> {
    let runs = collect_due_runs(node, &format!("[{}]", quoted(program)), due, count).await?;
    runs.iter().try_for_each(|(run, _)| check_success(run))?;
    Ok(recorded_delays(&runs))
}
