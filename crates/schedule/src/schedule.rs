//! A compiled schedule: the spec combined with its zone, its calendar and the job's id.

use crate::calendar::{Calendar, CalendarSet};
use crate::civil::{Day, TimeOfDay, WallTime};
use crate::cron::{CronBits, CronTimes};
use crate::daily::DailyTimes;
use crate::hash::StableHash;
use crate::instant::Instant;
use crate::span::Span;
use crate::spec::{FoldPolicy, GapPolicy, ScheduleSpec, TimeBound, Timing};
use crate::text::TextError;
use crate::walk::{self, LocalTimes, SeamPolicy};
use crate::window::DailyWindows;
use crate::zone::{FOREVER, Zone, ZoneRegistry};

/// Fixed times of day and window edges run once at the end of a gap and once for a repeated time.
const FIXED: SeamPolicy = SeamPolicy { gap: GapPolicy::Next, fold: FoldPolicy::First };
/// Every-hour rules follow elapsed time: skipped times do not run, repeated times run twice.
const ELAPSED: SeamPolicy = SeamPolicy { gap: GapPolicy::Skip, fold: FoldPolicy::Both };
/// Minimum distance between runs of a schedule that counts from the previous run.
const AFTER_MIN: Span = Span::from_secs(1);

/// What `Schedule::compile` needs besides the spec.
#[derive(Debug, Clone, Copy)]
pub struct CompileContext<'a> {
    /// Zones that a schedule can name.
    pub zones: &'a ZoneRegistry,
    /// The zone of schedules that do not name one.
    pub zone: &'a Zone,
    /// Calendars that a schedule can name.
    pub calendars: &'a CalendarSet,
    /// The job's id, which seeds `H` and jitter.
    pub job: &'a str,
}

/// A compiled schedule, which computes occurrences.
#[derive(Debug, Clone)]
pub struct Schedule {
    rule: CompiledRule,
    zone: Zone,
    /// Bounds, jitter and calendar; `None` for most schedules.
    limits: Option<Box<ScheduleBounds>>,
}

#[derive(Debug, Clone)]
enum CompiledRule {
    Cron { bits: CronBits, seams: SeamPolicy },
    Every { interval: i64, phase: i64 },
    After { interval: Span },
    Daily(Box<(DailyTimes, SeamPolicy)>),
    Windows(Box<DailyWindows>),
    At { instants: Box<[i64]>, seams: SeamPolicy },
    Never,
}

#[derive(Debug, Clone)]
struct ScheduleBounds {
    /// First allowed second.
    start: i64,
    /// Last allowed second.
    end: i64,
    jitter: Span,
    /// Days that occurrences are restricted to; `None` if the rule includes its days.
    calendar: Option<Calendar>,
    /// The calendar's text, passed to runs as an automatic argument.
    calendar_text: Option<String>,
    /// Seed of the jitter hash.
    seed: u64,
}

/// Why a valid spec cannot be compiled: the key and the error in its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    /// `timezone`, `calendar` or another key of the schedule.
    pub key: &'static str,
    pub error: TextError,
}

impl Schedule {
    /// Compiles a spec. Fails if its zone or calendar is unknown or its parts contradict each other.
    pub fn compile(spec: &ScheduleSpec, around: CompileContext<'_>) -> Result<Self, CompileError> {
        spec.check().map_err(|wrong| CompileError { key: wrong.key, error: TextError::new(0..0, wrong.message) })?;
        let in_key = |key| move |error| CompileError { key, error };
        let zone = match &spec.zone {
            Some(name) => around.zones.get(name).map_err(in_key("timezone"))?,
            None => around.zone.clone(),
        };
        let calendar = match &spec.calendar {
            Some(expr) => Some(around.calendars.compile(expr).map_err(in_key("calendar"))?),
            None => None,
        };
        let seams = |usual: SeamPolicy| SeamPolicy {
            gap: spec.gap.unwrap_or(usual.gap),
            fold: spec.fold.unwrap_or(usual.fold),
        };
        let every_day = || calendar.clone().unwrap_or_else(Calendar::all);
        let cron =
            |bits: CronBits| CompiledRule::Cron { bits, seams: seams(if bits.every_hour() { ELAPSED } else { FIXED }) };
        let secs = |span: Span| i64::try_from(span.secs()).unwrap_or(i64::MAX);
        let rule = match &spec.timing {
            Timing::Cron(expr) => cron(expr.resolve(around.job)),
            Timing::Fields(fields) => cron(fields.resolve()),
            Timing::Every { interval, phase } => CompiledRule::Every { interval: secs(*interval), phase: secs(*phase) },
            Timing::After { interval } => CompiledRule::After { interval: *interval },
            Timing::Daily(daily) => CompiledRule::Daily(Box::new((DailyTimes::new(daily, every_day()), seams(FIXED)))),
            Timing::DailyInterval(window) => {
                CompiledRule::Windows(Box::new(DailyWindows::new(window, every_day(), seams(FIXED))))
            }
            Timing::At(bounds) => {
                CompiledRule::At { instants: instants(bounds, &zone, seams(FIXED)), seams: seams(FIXED) }
            }
            Timing::Triggered | Timing::Never | Timing::Reboot => CompiledRule::Never,
        };
        let knows_days = matches!(rule, CompiledRule::Daily(_) | CompiledRule::Windows(_));
        let limits = ScheduleBounds {
            start: spec.start.map_or(-FOREVER, |bound| first_second(bound, &zone)),
            end: spec.end.map_or(FOREVER, |bound| last_second(bound, &zone)),
            jitter: spec.jitter,
            calendar: calendar.filter(|_| !knows_days),
            calendar_text: spec.calendar.as_ref().map(ToString::to_string),
            seed: seed(around.job),
        };
        let limited = limits.start > -FOREVER || limits.end < FOREVER;
        let needed = limited || !limits.jitter.is_zero() || limits.calendar_text.is_some();
        Ok(Self { rule, zone, limits: needed.then(|| Box::new(limits)) })
    }

    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Whether its occurrences depend on time zone data, which can differ between machines and change over time.
    pub fn depends_on_zone_data(&self) -> bool {
        let is_in_elapsed_time =
            matches!(self.rule, CompiledRule::Every { .. } | CompiledRule::After { .. } | CompiledRule::Never);
        let has_days = self
            .limits
            .as_ref()
            .is_some_and(|limits| limits.start > -FOREVER || limits.end < FOREVER || limits.calendar.is_some());
        !self.zone.is_fixed() && (!is_in_elapsed_time || has_days)
    }

    /// Whether it counts from the end of the previous run. Such a schedule has no occurrences of its own; use
    /// `after_run`.
    pub fn counts_from_previous(&self) -> bool {
        matches!(self.rule, CompiledRule::After { .. })
    }

    /// When the run after one that ended at `end` is due. `None` unless the schedule counts from the previous run.
    pub fn after_run(&self, end: Instant) -> Option<Instant> {
        let CompiledRule::After { interval } = self.rule else {
            return None;
        };
        let mut due = end.plus(interval.max(AFTER_MIN)).secs_up();
        if let Some(limits) = &self.limits {
            due = due.max(limits.start);
            if let Some(calendar) = &limits.calendar
                && !calendar.contains(self.zone.local(due).day())
            {
                due = first_second(TimeBound::Day(calendar.next(self.zone.local(due).day())?), &self.zone);
            }
            if due > limits.end {
                return None;
            }
        }
        Some(Instant::from_secs(due)).filter(|due| *due > end)
    }

    /// Occurrences after an instant, in order. For a schedule that counts from the previous run, this assumes that a
    /// run ended at `after` and that each later run ends immediately.
    pub fn coming(&self, after: Instant) -> impl Iterator<Item = Instant> + '_ {
        let step = if self.counts_from_previous() { Self::after_run } else { Self::next };
        std::iter::successors(step(self, after), move |at| step(self, *at))
    }

    /// The first occurrence strictly after an instant. `None` for a schedule that counts from the previous run.
    pub fn next(&self, after: Instant) -> Option<Instant> {
        let next = match &self.limits {
            None => self.next_second(after.secs())?,
            Some(limits) => {
                let from = after.secs().max(limits.start - 1);
                self.next_second(from).filter(|next| *next <= limits.end)?
            }
        };
        // `from_secs` saturates at the maximum instant.
        Some(Instant::from_secs(next)).filter(|next| *next > after)
    }

    /// The last occurrence strictly before an instant. `None` for a schedule that counts from the previous run.
    pub fn prev(&self, before: Instant) -> Option<Instant> {
        // Occurrences are whole seconds, so one in the same second as `before` may still be earlier.
        let before = before.secs_up();
        let Some(limits) = &self.limits else {
            return self.prev_second(before).map(Instant::from_secs);
        };
        let prev = self.prev_second(before.min(limits.end.saturating_add(1)))?;
        (prev >= limits.start).then(|| Instant::from_secs(prev))
    }

    /// Occurrences strictly after `after` and not later than `until`.
    pub fn between(&self, after: Instant, until: Instant) -> impl Iterator<Item = Instant> + '_ {
        self.coming(after).take_while(move |at| *at <= until)
    }

    /// Delay of an occurrence's run: the same on every node, less than the jitter and less than the distance to the
    /// next occurrence.
    pub fn jitter(&self, occurrence: Instant) -> Span {
        let Some(limits) = self.limits.as_ref().filter(|limits| !limits.jitter.is_zero()) else {
            return Span::ZERO;
        };
        let distance = self.next(occurrence).map_or(limits.jitter, |next| next.since(occurrence));
        let mut hash = StableHash::new();
        hash.number(limits.seed);
        hash.number(occurrence.micros().cast_unsigned());
        let below = limits.jitter.min(distance).millis().max(1);
        Span::from_millis(hash.finish() % below)
    }

    /// The args that an occurrence passes to its run. Those without a matching param of the job are dropped.
    pub fn automatic_args(&self, occurrence: Instant) -> Vec<(&'static str, String)> {
        let secs = occurrence.secs();
        let local = self.zone.local(secs);
        let mut args = vec![
            ("time", occurrence.to_string()),
            ("date", self.nominal_day(secs).unwrap_or(local.day()).to_string()),
            ("sched_date", local.day().to_string()),
            ("daytime", TimeOfDay(local.second_of_day()).with_seconds()),
            ("tz", self.zone.name().to_owned()),
        ];
        let calendar = self.limits.as_ref().and_then(|limits| limits.calendar_text.clone());
        args.extend(calendar.map(|calendar| ("calendar", calendar)));
        args
    }

    /// The last day that its calendar files cover. `None` if the calendar never runs out.
    pub fn calendar_known_until(&self) -> Option<Day> {
        let calendar = match &self.rule {
            CompiledRule::Daily(daily) => Some(daily.0.calendar()),
            CompiledRule::Windows(windows) => Some(windows.calendar()),
            _ => self.kept_to(),
        };
        calendar.and_then(Calendar::known_until)
    }

    /// Its policy for clock changes. `None` if it does not use local times.
    pub fn policy(&self) -> Option<(GapPolicy, FoldPolicy)> {
        match &self.rule {
            CompiledRule::Cron { seams, .. } => Some((seams.gap, seams.fold)),
            CompiledRule::Daily(daily) => Some((daily.1.gap, daily.1.fold)),
            CompiledRule::Windows(windows) => Some((windows.seams().gap, windows.seams().fold)),
            CompiledRule::At { seams, .. } => Some((seams.gap, seams.fold)),
            _ => None,
        }
    }

    /// The first local time of the rule in a range, regardless of clock changes.
    pub(crate) fn local_between(&self, from: WallTime, until: WallTime) -> Option<WallTime> {
        let hit = match &self.rule {
            CompiledRule::Cron { bits, .. } => self.cron_times(bits).at_or_after(from),
            CompiledRule::Daily(daily) => daily.0.at_or_after(from),
            _ => None,
        };
        hit.filter(|hit| *hit < until)
    }

    /// Its cron rule; `None` for other kinds of schedules.
    pub(crate) fn cron(&self) -> Option<&CronBits> {
        match &self.rule {
            CompiledRule::Cron { bits, .. } => Some(bits),
            _ => None,
        }
    }

    /// The calendar day of an occurrence, for rules that shift days.
    fn nominal_day(&self, secs: i64) -> Option<Day> {
        match &self.rule {
            CompiledRule::Daily(daily) => {
                let (times, seams) = daily.as_ref();
                let today = self.zone.local(secs).day();
                // A gap over midnight moves an occurrence to the next day.
                let own = |day: &Day| {
                    if !times.runs_on(*day) {
                        return false;
                    }
                    let locals = times.times().iter().map(|second| day.midnight().0 + i64::from(*second));
                    locals
                        .map(WallTime)
                        .any(|local| self.zone.instants(local, seams.gap, seams.fold).any(|instant| instant == secs))
                };
                let day = [today, today.plus(-1)].into_iter().find(own)?;
                times.calendar_day(day)
            }
            CompiledRule::Windows(windows) => windows.calendar_day(&self.zone, secs),
            _ => None,
        }
    }

    /// The calendar that occurrences are restricted to; `None` if the rule includes its days.
    fn kept_to(&self) -> Option<&Calendar> {
        self.limits.as_ref()?.calendar.as_ref()
    }

    fn cron_times<'a>(&'a self, cron: &'a CronBits) -> CronTimes<'a> {
        CronTimes { cron, calendar: self.kept_to() }
    }

    fn next_second(&self, after: i64) -> Option<i64> {
        match &self.rule {
            CompiledRule::Cron { bits, seams } => walk::next(&self.cron_times(bits), &self.zone, *seams, after),
            CompiledRule::Daily(daily) => walk::next(&daily.0, &self.zone, daily.1, after),
            CompiledRule::Windows(windows) => windows.next(&self.zone, after),
            CompiledRule::Never | CompiledRule::After { .. } => None,
            CompiledRule::Every { .. } | CompiledRule::At { .. } => self.next_on_days(after),
        }
    }

    fn prev_second(&self, before: i64) -> Option<i64> {
        match &self.rule {
            CompiledRule::Cron { bits, seams } => walk::prev(&self.cron_times(bits), &self.zone, *seams, before),
            CompiledRule::Daily(daily) => walk::prev(&daily.0, &self.zone, daily.1, before),
            CompiledRule::Windows(windows) => windows.prev(&self.zone, before),
            CompiledRule::Never | CompiledRule::After { .. } => None,
            CompiledRule::Every { .. } | CompiledRule::At { .. } => self.prev_on_days(before),
        }
    }

    /// For rules over instants: the next occurrence on a day of the calendar. Each iteration advances by at least one
    /// occurrence, and the calendar ends with the year 2100.
    fn next_on_days(&self, mut after: i64) -> Option<i64> {
        loop {
            let next = match &self.rule {
                CompiledRule::Every { interval, phase } => {
                    phase + ((after - phase).div_euclid(*interval) + 1) * interval
                }
                CompiledRule::At { instants, .. } => *instants.get(instants.partition_point(|at| *at <= after))?,
                _ => return None,
            };
            let day = self.zone.local(next).day();
            match self.kept_to() {
                Some(calendar) if !calendar.contains(day) => {
                    let from = first_second(TimeBound::Day(calendar.next(day.plus(1))?), &self.zone);
                    // A clock that is set back can repeat a day, but only at the end of a segment.
                    let seam = self.zone.segment(self.zone.segment_at(next)).end;
                    after = (from.min(seam) - 1).max(next);
                }
                _ => return Some(next),
            }
        }
    }

    fn prev_on_days(&self, mut before: i64) -> Option<i64> {
        loop {
            let prev = match &self.rule {
                CompiledRule::Every { interval, phase } => {
                    phase + (before - 1 - phase).div_euclid(*interval) * interval
                }
                CompiledRule::At { instants, .. } => {
                    instants[..instants.partition_point(|at| *at < before)].last().copied()?
                }
                _ => return None,
            };
            let day = self.zone.local(prev).day();
            match self.kept_to() {
                Some(calendar) if !calendar.contains(day) => {
                    let until = last_second(TimeBound::Day(calendar.prev(day.plus(-1))?), &self.zone);
                    let seam = self.zone.segment(self.zone.segment_at(prev)).start;
                    before = (until + 1).max(seam).min(prev);
                }
                _ => return Some(prev),
            }
        }
    }
}

fn seed(job: &str) -> u64 {
    let mut hash = StableHash::new();
    hash.text(job);
    hash.finish()
}

fn instants(bounds: &[TimeBound], zone: &Zone, seams: SeamPolicy) -> Box<[i64]> {
    let mut instants: Vec<i64> = Vec::with_capacity(bounds.len());
    for bound in bounds {
        match bound {
            TimeBound::Instant(instant) => instants.push(instant.secs()),
            TimeBound::Local(local) => instants.extend(zone.instants(*local, seams.gap, seams.fold)),
            TimeBound::Day(day) => instants.extend(zone.instants(day.midnight(), seams.gap, seams.fold)),
        }
    }
    instants.sort_unstable();
    instants.dedup();
    instants.into()
}

/// The first second that a bound allows as a start.
fn first_second(bound: TimeBound, zone: &Zone) -> i64 {
    let first = |local| zone.instants(local, GapPolicy::Next, FoldPolicy::First).next().unwrap_or(-FOREVER);
    match bound {
        TimeBound::Instant(instant) => instant.secs(),
        TimeBound::Local(local) => first(local),
        TimeBound::Day(day) => first(day.midnight()),
    }
}

/// The last second that a bound allows as an end.
fn last_second(bound: TimeBound, zone: &Zone) -> i64 {
    match bound {
        TimeBound::Instant(instant) => instant.secs(),
        // A repeated local time means the first one, as everywhere.
        TimeBound::Local(local) => zone.instants(local, GapPolicy::Next, FoldPolicy::First).last().unwrap_or(FOREVER),
        // If midnight is repeated, the day ends at the later one.
        TimeBound::Day(day) => {
            let midnights = zone.instants(day.plus(1).midnight(), GapPolicy::Next, FoldPolicy::Both);
            let own = midnights.filter(|at| zone.local(at - 1).day() <= day);
            own.last().map_or(FOREVER, |at| at - 1)
        }
    }
}
