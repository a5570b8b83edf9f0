//! Draws jobs: schedules of every kind, and every policy in every combination. All schedules end with the fault phase,
//! so that everything can come to rest. `job_conditions` draws params and conditions.

use std::collections::BTreeSet;

use cronhold_core::NameMap;
use cronhold_core::job::{
    CatchUpPolicy, CatchUpRule, JobSchedule, LockPolicy, NodeSelector, OnLost, OverlapPolicy, Program, Retain, Retry,
    RetryOn, StopPolicy, StopSchedule,
};
use cronhold_core::signal::Signal;
use cronhold_core::{Job, JobId};
use cronhold_schedule::{
    DailyInterval, DayShift, Instant, ScheduleSpec, Span, TimeBound, TimeOfDay, Timing, WindowEdge, ZoneRegistry,
};
use std::sync::Arc;

use crate::draw::LABELS;
use crate::random::SimRandom;

/// Parameters for drawing jobs.
#[derive(Debug, Clone)]
pub(crate) struct JobRecipe {
    pub(crate) rng: SimRandom,
    /// Zone data for the zones in `PLACES`.
    pub(crate) zones: Arc<ZoneRegistry>,
    pub(crate) start: Instant,
    /// When all schedules end.
    pub(crate) end: Instant,
    /// Minimum interval between occurrences, in seconds, which limits the duration of a seed.
    pub(crate) shortest: u64,
    /// Whether jobs may have locks.
    pub(crate) has_locks: bool,
    /// All jobs, which conditions may name.
    pub(crate) names: Vec<JobId>,
}

/// The interval of a job that is due often.
const FREQUENT: Span = Span::from_secs(3);

/// Zones of schedules; two of them have clock changes.
const PLACES: [&str; 3] = ["Europe/Berlin", "America/New_York", "Asia/Kolkata"];

/// Cron expressions that come due a few times in a simulation.
const CRON_EXPRESSIONS: [&str; 5] =
    ["*/2 * * * *", "* * * * *", "*/5 * * * *", "30 */1 * * * * *", "15,45 */3 * * * * *"];

impl JobRecipe {
    /// The same parameters with another random stream.
    pub(crate) fn with(&self, rng: SimRandom) -> Self {
        Self { rng, ..self.clone() }
    }

    /// Draws a job.
    pub(crate) fn job(&self) -> Job {
        let rng = &self.rng;
        let count = if rng.one_in(3) { rng.between(0, 3) } else { 1 };
        let mut job = Job::new(Program::Noop { duration: self.duration() });
        job.schedules = (0..count).map(|number| self.schedule(number)).collect();
        job.overlap = self.overlap();
        job.lock = self.lock();
        job.ttl = rng.secs(2, 10);
        job.nodes = self.nodes();
        job.catch_up = self.catch_up();
        job.retry = self.retry();
        job.timeout = rng.one_in(3).then(|| rng.secs(1, 2 * self.shortest));
        job.stop = StopPolicy { signal: Signal::TERM, grace: rng.secs(0, 8) };
        if rng.one_in(2) {
            let few = || u32::try_from(rng.between(1, 12)).expect("small");
            job.retain = Retain { success: few(), failure: few(), error: few(), skipped: few(), ..Retain::default() };
        }
        if rng.one_in(4) {
            job.on_lost = OnLost::Retry;
        }
        job.paused = rng.one_in(12);
        self.draw_params(&mut job);
        self.draw_conditions(&mut job);
        job
    }

    /// A job that is due every few seconds and keeps few runs, so that after a clock was set back occurrences come
    /// once more whose runs are deleted.
    pub(crate) fn frequent_job(&self) -> Job {
        let mut job = Job::new(Program::Noop { duration: Span::ZERO });
        let mut spec = ScheduleSpec::new(Timing::Every { interval: FREQUENT, phase: Span::ZERO });
        spec.end = Some(TimeBound::Instant(self.end));
        let name = Some("s0".to_owned());
        job.schedules = vec![JobSchedule { name, spec, args: NameMap::new(), enabled: true, stop: None }];
        job.overlap = OverlapPolicy::Allow;
        job.retain = Retain { success: 1, failure: 1, error: 1, skipped: 1, ..Retain::default() };
        job
    }

    /// Draws a copy of a job with one property changed.
    pub(crate) fn change(&self, job: &Job) -> Job {
        let mut job = job.clone();
        match self.rng.between(0, 8) {
            0 => job.program = Program::Noop { duration: self.duration() },
            1 => job.overlap = self.overlap(),
            2 => job.catch_up = self.catch_up(),
            3 => job.retry = self.retry(),
            4 => job.schedules.iter_mut().for_each(|schedule| schedule.enabled = !schedule.enabled),
            5 => job.schedules = vec![self.schedule(0)],
            6 => job.nodes = self.nodes(),
            7 => self.draw_conditions(&mut job),
            _ => job.lock = self.lock(),
        }
        job
    }

    fn schedule(&self, number: u64) -> JobSchedule {
        let rng = &self.rng;
        let zone = rng.one_in(4).then(|| (*rng.pick(&PLACES)).to_owned());
        let mut spec = self.spec(zone.as_deref());
        spec.zone = zone;
        spec.end = Some(TimeBound::Instant(self.end));
        if rng.one_in(5) {
            spec.jitter = rng.secs(1, self.shortest / 2 + 1);
        }
        let stop = rng.one_in(6).then(|| StopSchedule::After(rng.secs(1, self.shortest * 2)));
        // Named, because two equal schedules without names would have the same id.
        let name = Some(format!("s{number}"));
        JobSchedule { name, spec, args: NameMap::new(), enabled: !rng.one_in(10), stop }
    }

    fn spec(&self, zone: Option<&str>) -> ScheduleSpec {
        let rng = &self.rng;
        let interval = rng.secs(self.shortest, self.shortest * 6);
        let timing = match rng.between(0, 11) {
            0..=4 => Timing::Every { interval, phase: Span::from_secs(rng.between(0, interval.secs() - 1)) },
            5 | 6 => {
                return ScheduleSpec::parse(CRON_EXPRESSIONS[rng.index(CRON_EXPRESSIONS.len())])
                    .expect("one of a fixed list");
            }
            7 | 8 => Timing::After { interval: rng.secs(0, self.shortest * 3) },
            9 => Timing::daily((0..rng.between(1, 5)).map(|_| self.time_of_day(zone)).collect(), DayShift::default()),
            10 => self.window(zone, interval),
            _ if rng.one_in(4) => rng.pick(&[Timing::Reboot, Timing::Triggered]).clone(),
            _ => Timing::at((0..rng.between(1, 6)).map(|_| TimeBound::Instant(self.instant())).collect()),
        };
        ScheduleSpec::new(timing)
    }

    fn window(&self, zone: Option<&str>, interval: Span) -> Timing {
        let (one, other) = (self.time_of_day(zone), self.time_of_day(zone));
        let edge = |time| WindowEdge { time, shift: DayShift::default() };
        let (from, until) = (one.min(other), one.max(other));
        if from == until {
            return Timing::Every { interval, phase: Span::ZERO };
        }
        Timing::DailyInterval(DailyInterval { from: edge(from), until: edge(until), interval })
    }

    /// Draws a whole second of the simulation.
    fn instant(&self) -> Instant {
        self.start.plus(self.rng.secs(0, self.end.since(self.start).secs()))
    }

    /// Draws a time of day of the simulation, as local time in a zone.
    fn time_of_day(&self, zone: Option<&str>) -> TimeOfDay {
        let at = self.instant().secs();
        let local = zone.and_then(|name| self.zones.get(name).ok()).map(|zone| zone.local(at).second_of_day());
        TimeOfDay(local.unwrap_or_else(|| u32::try_from(at.rem_euclid(86_400)).expect("below a day")))
    }

    /// Mostly shorter than the time until the next occurrence, sometimes longer.
    fn duration(&self) -> Span {
        match self.rng.between(0, 5) {
            0 => Span::ZERO,
            1 | 2 => self.rng.micros(1_000, 1_000_000),
            3 | 4 => self.rng.secs(1, self.shortest),
            _ => self.rng.secs(self.shortest, self.shortest * 3),
        }
    }

    /// Some jobs have their own lock; two named locks are shared by many jobs.
    fn lock(&self) -> LockPolicy {
        match self.rng.between(0, 5) {
            0 if self.has_locks => LockPolicy::Job,
            1 if self.has_locks => LockPolicy::Named("red".to_owned()),
            2 if self.has_locks => LockPolicy::Named("blue".to_owned()),
            _ => LockPolicy::None,
        }
    }

    /// Mostly any node; sometimes labels that no node may have.
    fn nodes(&self) -> NodeSelector {
        let labels = || BTreeSet::from([(*self.rng.pick(&LABELS)).to_owned()]);
        match self.rng.between(0, 11) {
            0 | 1 => NodeSelector::Labels(labels()),
            2 => NodeSelector::Each(labels()),
            3 => NodeSelector::Each(BTreeSet::new()),
            _ => NodeSelector::Any,
        }
    }

    fn overlap(&self) -> OverlapPolicy {
        match self.rng.between(0, 4) {
            0 => OverlapPolicy::Allow,
            1 | 2 => OverlapPolicy::Skip,
            3 => OverlapPolicy::Queue { limit: u32::try_from(self.rng.between(0, 4)).expect("small") },
            _ => OverlapPolicy::Replace,
        }
    }

    fn catch_up(&self) -> CatchUpRule {
        let policy = *self.rng.pick(&[CatchUpPolicy::None, CatchUpPolicy::Last, CatchUpPolicy::All]);
        CatchUpRule { policy, within: self.rng.secs(30, 1_200) }
    }

    fn retry(&self) -> Retry {
        let rng = &self.rng;
        let on = match rng.between(0, 2) {
            0 => BTreeSet::from([RetryOn::Failure]),
            1 => BTreeSet::from([RetryOn::Error]),
            _ => BTreeSet::from([RetryOn::Failure, RetryOn::Error]),
        };
        let attempts = if rng.one_in(2) { 1 } else { u32::try_from(rng.between(2, 4)).expect("small") };
        Retry { attempts, backoff: rng.secs(0, 20), on, ..Retry::default() }
    }
}
