//! One call of `cronhold bench`: its stages one after the other, each with a directory and a store of its own. A signal,
//! a failure or the time limit ends it at any point.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use cronhold_cli::{BenchArgs, BenchFigure, BenchReport, CliError};
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;

use super::due_at_once::measure_bursts;
use super::machine::{measure_spawn_rate, time_durable_writes, time_round_trips, time_timers};
use super::node::{BenchNode, NodeSetup, with_node};
use super::programs::{DueJobs, measure_process_rate, measure_start_delays};
use super::runs::{measure_run_rate, put_frequent_jobs, time_lone_claims, while_requesting};
use super::samples::{LoopLimit, SampleSet, seconds};
use super::scratch_place::ScratchPlace;
use super::stages::{BenchStage, StageTimes, rounded};
use crate::await_store::unusable;
use crate::clock::SystemClock;
use crate::daemon::{cannot_start, store_failure};
use crate::progress_line::ProgressLine;
use crate::signals::SignalListener;

/// Interval at which the progress line is updated.
const TICK: Span = Span::from_millis(200);
/// The benchmark gives up after this many times the requested duration, but not before the least time. A slow machine
/// takes longer than requested, and its result is still worth having.
const LIMIT_FACTOR: u64 = 3;
const LIMIT_MIN: Span = Span::from_secs(120);
/// Jobs that are due at one instant.
const AT_ONCE: usize = 1_000;
/// The longest time between two such instants, in seconds.
const EVERY_MAX: usize = 10;
/// The least and the largest number of jobs that are due every second.
const FREQUENT_JOBS: (usize, usize) = (1_000, 50_000);
/// The largest number of programs that are due in a second, and how large a part of the process rate they may be.
const STARTS_MAX: usize = 100;
const STARTS_PART: f64 = 0.25;

/// The programs that a benchmark starts.
#[derive(Debug, Clone, Copy)]
pub(super) struct BenchPrograms<'a> {
    /// Becomes a keeper.
    pub(super) keeper: &'a Path,
    /// Does nothing.
    pub(super) noop: &'a Path,
}

/// A benchmark in progress.
#[derive(Debug)]
pub(super) struct BenchSession<'a> {
    place: &'a ScratchPlace,
    programs: BenchPrograms<'a>,
    signals: SignalListener,
    clock: SystemClock,
    line: ProgressLine<'a>,
    times: StageTimes,
    accept_loss: bool,
    begin: Span,
    limit: Span,
    report: BenchReport,
}

impl<'a> BenchSession<'a> {
    pub(super) fn new(
        place: &'a ScratchPlace,
        programs: BenchPrograms<'a>,
        signals: SignalListener,
        clock: SystemClock,
        line: ProgressLine<'a>,
        wanted: &BenchArgs,
    ) -> Self {
        Self {
            place,
            programs,
            signals,
            line,
            times: StageTimes::new(wanted.seconds),
            accept_loss: wanted.accept_loss,
            begin: clock.uptime(),
            limit: Span::from_secs(LIMIT_FACTOR * u64::from(wanted.seconds)).max(LIMIT_MIN),
            report: BenchReport::new(place.stores().to_string(), place.path().display().to_string()),
            clock,
        }
    }

    /// Runs all stages.
    pub(super) async fn measure(mut self) -> Result<BenchReport, CliError> {
        let measured = self.measure_all().await;
        self.line.clear();
        measured.map(|()| self.report)
    }

    async fn measure_all(&mut self) -> Result<(), CliError> {
        self.measure_store().await?;
        self.measure_timers().await?;
        let spawn_rate = self.measure_spawns().await?;
        self.measure_claims().await?;
        let run_rate = self.measure_runs().await?;
        self.measure_at_once(run_rate).await?;
        self.measure_programs(spawn_rate).await
    }

    /// The disk of an SQLite store, or the connection to another one.
    async fn measure_store(&mut self) -> Result<(), CliError> {
        let limit = LoopLimit::Time(self.times.span(BenchStage::Store));
        let url = self.place.store_url(BenchStage::Store.name()).map_err(|error| store_failure(&error))?;
        if url.is_shared() {
            let work = async |node: &BenchNode| {
                let trips = time_round_trips(&*node.store, limit).await.map_err(|fault| unusable(&fault))?;
                Ok((trips, node.store.health().await.warnings))
            };
            let (trips, warnings) = self.on_node(BenchStage::Store, |setup| setup, work).await?;
            self.report.set_warnings(warnings);
            self.set_percentiles(&trips, BenchFigure::RoundTripMedian, BenchFigure::RoundTripP99);
        } else {
            let path = self.place.path().join("bytes");
            let work = async { time_durable_writes(&path, limit).await.map_err(|error| disk_error(&path, &error)) };
            let writes = self.without_node(BenchStage::Store, work).await?;
            let _ = fs::remove_file(&path);
            self.report.set(BenchFigure::FsyncPerSecond, writes.per_second());
            self.set_percentiles(&writes, BenchFigure::FsyncMedian, BenchFigure::FsyncP99);
        }
        Ok(())
    }

    async fn measure_timers(&mut self) -> Result<(), CliError> {
        let limit = LoopLimit::Time(self.times.span(BenchStage::Timers));
        let clock = SystemClock::new().map_err(|error| cannot_start(&error))?;
        let late = self.without_node(BenchStage::Timers, async { Ok(time_timers(&clock, limit).await) }).await?;
        self.set_percentiles(&late, BenchFigure::TimerLateMedian, BenchFigure::TimerLateP99);
        Ok(())
    }

    /// Returns how many programs a bare loop runs per second.
    async fn measure_spawns(&mut self) -> Result<f64, CliError> {
        let (limit, program) = (LoopLimit::Time(self.times.span(BenchStage::Spawns)), self.programs.noop);
        let work = async {
            let rate = measure_spawn_rate(limit, || Command::new(program)).await;
            rate.map_err(|error| spawn_error(program, &error))
        };
        let rate = self.without_node(BenchStage::Spawns, work).await?;
        self.report.set(BenchFigure::SpawnPerSecond, rate);
        Ok(rate)
    }

    async fn measure_claims(&mut self) -> Result<(), CliError> {
        let limit = LoopLimit::Time(self.times.span(BenchStage::Claims));
        let work = async |node: &BenchNode| time_lone_claims(node, limit).await;
        let claims = self.on_node(BenchStage::Claims, NodeSetup::with_ended_runs, work).await?;
        self.set_percentiles(&claims, BenchFigure::ClaimMedian, BenchFigure::ClaimP99);
        Ok(())
    }

    /// Returns how many no-op runs on request the node does per second.
    async fn measure_runs(&mut self) -> Result<f64, CliError> {
        let times = self.times;
        let spans = |stage| (times.warm_up(stage), times.span(stage));
        let (warm_up, span) = spans(BenchStage::Requests);
        let work = async |node: &BenchNode| while_requesting(node, measure_run_rate(node, warm_up, span)).await;
        let requested = self.on_node(BenchStage::Requests, |setup| setup, work).await?;
        self.report.set(BenchFigure::RequestedRunsPerSecond, requested);
        // More jobs than the node can run, but not so many that putting them takes most of the time.
        let jobs = rounded(1.2 * requested).clamp(FREQUENT_JOBS.0, FREQUENT_JOBS.1);
        let (warm_up, span) = spans(BenchStage::Schedules);
        let work = async |node: &BenchNode| {
            put_frequent_jobs(node, jobs).await?;
            Ok(measure_run_rate(node, warm_up, span).await)
        };
        let scheduled = self.on_node(BenchStage::Schedules, |setup| setup, work).await?;
        self.report.set(BenchFigure::ScheduledRunsPerSecond, scheduled);
        Ok(requested)
    }

    async fn measure_at_once(&mut self, run_rate: f64) -> Result<(), CliError> {
        let rounds = rounded(seconds(self.times.span(BenchStage::DueAtOnce))).max(1);
        // A slow node needs time to finish one instant before the next one.
        let every = (2 * AT_ONCE / rounded(run_rate).max(1) + 1).min(EVERY_MAX);
        let work = async |node: &BenchNode| measure_bursts(node, AT_ONCE, every, rounds).await;
        let bursts = self.on_node(BenchStage::DueAtOnce, |setup| setup, work).await?;
        self.report.set(BenchFigure::DueAtOnceMedian, bursts.percentile(50));
        self.report.set(BenchFigure::DueAtOnceP99, bursts.percentile(99));
        Ok(())
    }

    async fn measure_programs(&mut self, spawn_rate: f64) -> Result<(), CliError> {
        let BenchPrograms { keeper, noop } = self.programs;
        let limit = LoopLimit::Time(self.times.span(BenchStage::ProcessRate));
        let work = async |node: &BenchNode| measure_process_rate(node, noop, limit).await;
        let rate = self.on_node(BenchStage::ProcessRate, |setup| setup.with_keeper(keeper), work).await?;
        self.report.set(BenchFigure::ProcessRunsPerSecond, rate);
        self.report.set(BenchFigure::ProcessRunsOfSpawn, 100.0 * rate / spawn_rate.max(1.0));
        let jobs = rounded(rate * STARTS_PART).clamp(1, STARTS_MAX);
        let count = jobs * rounded(seconds(self.times.span(BenchStage::StartDelays))).max(1);
        let due = DueJobs { jobs, every: 1, jitter: 1 };
        let work = async |node: &BenchNode| measure_start_delays(node, noop, due, count).await;
        let late = self.on_node(BenchStage::StartDelays, |setup| setup.with_keeper(keeper), work).await?;
        self.set_percentiles(&late, BenchFigure::ProcessStartLateMedian, BenchFigure::ProcessStartLateP99);
        Ok(())
    }

    fn set_percentiles(&mut self, samples: &SampleSet, median: BenchFigure, p99: BenchFigure) {
        self.report.set(median, samples.median());
        self.report.set(p99, samples.percentile(99));
    }

    /// Runs a stage that needs no node.
    async fn without_node<T>(
        &mut self,
        stage: BenchStage,
        work: impl Future<Output = Result<T, CliError>>,
    ) -> Result<T, CliError> {
        tokio::select! {
            biased;
            error = self.watch(stage) => Err(error),
            result = work => result,
        }
    }

    /// Runs a stage on a node of its own, whose directory is removed afterwards.
    async fn on_node<T>(
        &mut self,
        stage: BenchStage,
        configure: impl FnOnce(NodeSetup) -> NodeSetup,
        work: impl AsyncFnOnce(&BenchNode) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let dir = self.place.create_home(stage.name());
        let dir = dir.map_err(|error| disk_error(self.place.path(), &error))?;
        let store = self.place.store_url(stage.name()).map_err(|error| store_failure(&error))?;
        let setup = configure(NodeSetup::new(&dir, store).accepting_loss(self.accept_loss));
        let result = with_node(setup, self.watch(stage), work).await;
        // What cannot be removed yet is removed at the end.
        let _ = fs::remove_dir_all(dir);
        result
    }

    /// Shows progress until the benchmark has to end early, and returns why.
    async fn watch(&mut self, stage: BenchStage) -> CliError {
        let begin = self.clock.uptime();
        loop {
            let now = self.clock.uptime();
            if now.minus(self.begin) > self.limit {
                let message = format!("the benchmark is not complete after {}: {}", self.limit, stage.label());
                return CliError::refused(message, "try again when the machine and the store have less to do");
            }
            self.line.show(self.times.progress(stage, now.minus(begin)), 1_000, stage.label());
            tokio::select! {
                biased;
                signal = self.signals.next_stop() => {
                    let message = format!("received {signal}; the benchmark is not complete");
                    return CliError::Refused { message, hint: None };
                }
                () = self.clock.sleep(TICK) => {}
            }
        }
    }
}

fn disk_error(path: &Path, error: &io::Error) -> CliError {
    let message = format!("cannot write to {}: {error}", path.display());
    CliError::refused(message, "name a directory with free space with --data")
}

fn spawn_error(program: &Path, error: &io::Error) -> CliError {
    let message = format!("cannot start {}: {error}", program.display());
    CliError::refused(message, "check the limit of processes (`ulimit -u`)")
}
