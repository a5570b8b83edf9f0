//! No-op runs: one claim alone, and as many runs as the node can do. Each run is durable before it starts and again when
//! it has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_cli::CliError;
use cronhold_schedule::Span;
use tokio::task::JoinSet;

use super::node::{BenchNode, finish, job_id};
use super::samples::{LoopLimit, SampleSet, Stopwatch, number, seconds};

/// Jobs that run on request.
const REQUESTED_JOBS: usize = 1_000;
/// Concurrent requests.
const CLIENTS: usize = 4_096;

/// Interval at which finished runs are counted.
const POLL_INTERVAL: Span = Span::from_millis(1);

/// A job that runs on request.
const ON_REQUEST: &str = "program: {noop: true}\noverlap: allow\nschedule: triggered\n";
/// Jobs that a node stores in a second, at least.
const PUTS_PER_SECOND: u64 = 3_000;

/// Requests runs, one after the other. Returns how long each took until it was claimed and durable. The node must have a
/// queue of finished runs.
pub async fn time_lone_claims(node: &BenchNode, limit: LoopLimit) -> Result<SampleSet, CliError> {
    node.put_jobs(1, |_| ON_REQUEST.to_owned()).await?;
    let (begin, mut millis) = (Stopwatch::start(), Vec::new());
    while !limit.is_reached(millis.len(), begin) {
        let claim = Stopwatch::start();
        BenchNode::run_once(&node.node, job_id(0)).await?;
        millis.push(claim.millis());
        // The commit of its end must not delay the next claim.
        node.recorder.next_ended(1).await;
    }
    Ok(SampleSet::new(millis))
}

/// Requests runs as fast as the node accepts them while `work` runs.
pub async fn while_requesting<T>(node: &BenchNode, work: impl Future<Output = T>) -> Result<T, CliError> {
    node.put_jobs(REQUESTED_JOBS, |_| ON_REQUEST.to_owned()).await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (node, is_over, job) = (node.node.clone(), Arc::clone(&is_over), job_id(client % REQUESTED_JOBS));
        clients.spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                BenchNode::run_once(&node, job.clone()).await?;
            }
            Ok(())
        });
    }
    let result = work.await;
    is_over.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        finish(ended)?;
    }
    Ok(result)
}

/// Puts jobs that are due every second, and waits until they are. Few of their runs are kept. None is due before all are
/// put: a node that has too much to do refuses requests.
pub async fn put_frequent_jobs(node: &BenchNode, count: usize) -> Result<(), CliError> {
    let begin = node.clock.now().plus(Span::from_secs(1 + count as u64 / PUTS_PER_SECOND));
    let schedule = format!("{{every: 1s, start: \"{begin}\"}}");
    let yaml = format!("program: {{noop: true}}\noverlap: allow\nschedule: {schedule}\nretain: {{success: 5}}\n");
    node.put_jobs(count, |_| yaml.clone()).await?;
    node.clock.sleep(begin.since(node.clock.now())).await;
    Ok(())
}

/// How many runs the node finishes per second, after a time of warm-up. Runs finish in batches, so the measurement begins
/// and ends with one.
pub async fn measure_run_rate(node: &BenchNode, warm_up: Span, span: Span) -> f64 {
    node.clock.sleep(warm_up).await;
    let (before, begin) = wait_for_batch(node).await;
    node.clock.sleep(span).await;
    let (after, end) = wait_for_batch(node).await;
    number(after - before) / seconds(end.minus(begin))
}

/// Waits until more runs have finished. Returns how many have in all, and the uptime.
async fn wait_for_batch(node: &BenchNode) -> (u64, Span) {
    let before = node.node.counters().finished;
    loop {
        let finished = node.node.counters().finished;
        if finished > before {
            return (finished, node.clock.uptime());
        }
        node.clock.sleep(POLL_INTERVAL).await;
    }
}
