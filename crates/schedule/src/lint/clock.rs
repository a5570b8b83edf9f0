//! Warnings about clock changes: times that do not exist on a coming day, and times that come twice.

use super::{LintKind, LintWarning};
use crate::civil::{TimeOfDay, WallTime};
use crate::cron::CronBits;
use crate::instant::Instant;
use crate::schedule::Schedule;
use crate::span::Span;
use crate::spec::{DailyInterval, FoldPolicy, GapPolicy, ScheduleSpec, TimeBound, Timing};
use crate::zone::OffsetChange;

/// How far ahead clock changes are examined: two years, so that each kind occurs twice.
const AHEAD: Span = Span::from_secs(2 * 366 * 86_400);
/// Maximum number of dates named in a warning.
const DATES: usize = 2;

/// A local time of a schedule that a clock change skips or repeats.
#[derive(Debug, Clone, Copy)]
struct ClockChangeHit {
    what: ClockChangeKind,
    local: WallTime,
    /// Local times at the two ends of the gap or fold.
    from: WallTime,
    until: WallTime,
}

/// The role of the time in the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClockChangeKind {
    Run,
    WindowBegins,
    WindowEnds,
}

/// Warnings for the first gap and the first fold that affect the schedule.
pub(super) fn clock_changes(spec: &ScheduleSpec, schedule: &Schedule, now: Instant) -> Vec<LintWarning> {
    let Some((gap, fold)) = schedule.policy() else {
        return Vec::new();
    };
    // An every-hour rule that follows elapsed time runs as often as on other days.
    if (gap, fold) == (GapPolicy::Skip, FoldPolicy::Both) && schedule.cron().is_some_and(CronBits::runs_all_hours) {
        return Vec::new();
    }
    let mut gaps = Vec::new();
    let mut folds = Vec::new();
    for change in schedule.zone().changes(now.secs(), now.plus(AHEAD).secs()) {
        let seen = if change.after > change.before { &mut gaps } else { &mut folds };
        seen.extend(hit(spec, schedule, change));
    }
    let zone = schedule.zone().name();
    let gap = gaps.first().map(|hit| gap_warning(*hit, &dates(&gaps), zone, gap));
    let fold = folds.first().map(|hit| fold_warning(*hit, &dates(&folds), zone, fold));
    gap.into_iter().chain(fold).collect()
}

/// The first time of the schedule that a change skips or repeats.
fn hit(spec: &ScheduleSpec, schedule: &Schedule, change: OffsetChange) -> Option<ClockChangeHit> {
    let (before, after) = (change.at + i64::from(change.before), change.at + i64::from(change.after));
    let (from, until) = (WallTime(before.min(after)), WallTime(before.max(after)));
    let hit = |what: ClockChangeKind| move |local: WallTime| ClockChangeHit { what, local, from, until };
    let inside = |local: &WallTime| (from..until).contains(local);
    let found = match &spec.timing {
        Timing::DailyInterval(window) => window_hit(window, from, inside).map(|(what, local)| hit(what)(local)),
        Timing::At(instants) => {
            let locals = instants.iter().filter_map(|bound| match bound {
                TimeBound::Instant(_) => None,
                TimeBound::Local(local) => Some(*local),
                TimeBound::Day(day) => Some(day.midnight()),
            });
            locals.filter(inside).min().map(hit(ClockChangeKind::Run))
        }
        _ => schedule.local_between(from, until).map(hit(ClockChangeKind::Run)),
    };
    found.filter(|hit| within_bounds(spec, hit.local, change) && on_its_days(spec, schedule, hit.local))
}

/// The window edge that a change affects.
fn window_hit(
    window: &DailyInterval,
    from: WallTime,
    inside: impl Fn(&WallTime) -> bool,
) -> Option<(ClockChangeKind, WallTime)> {
    let edges = [(ClockChangeKind::WindowBegins, window.from.time), (ClockChangeKind::WindowEnds, window.until.time)];
    // A change around midnight affects two days.
    let days = [from.day(), from.day().plus(1)];
    let on_days = |(what, time): (ClockChangeKind, TimeOfDay)| {
        days.map(|day| (what, WallTime(day.midnight().0 + i64::from(time.0))))
    };
    edges.into_iter().flat_map(on_days).find(|(_, local)| inside(local))
}

/// Whether a time lies between the schedule's own start and end.
fn within_bounds(spec: &ScheduleSpec, local: WallTime, change: OffsetChange) -> bool {
    let order = |bound: TimeBound| match bound {
        TimeBound::Instant(instant) => change.at.cmp(&instant.secs()),
        TimeBound::Local(bound) => local.cmp(&bound),
        TimeBound::Day(day) => local.day().cmp(&day),
    };
    spec.start.is_none_or(|start| order(start).is_ge()) && spec.end.is_none_or(|end| order(end).is_le())
}

/// Whether the time is on a day of the calendar. Rules over local times include their days. For other rules this checks
/// the resulting occurrence; if there is none, lint gives no warning rather than a false one.
fn on_its_days(spec: &ScheduleSpec, schedule: &Schedule, local: WallTime) -> bool {
    let knows_days = !matches!(spec.timing, Timing::DailyInterval(_) | Timing::At(_));
    if spec.calendar.is_none() || knows_days {
        return true;
    }
    let mut shown = schedule.zone().instants(local, GapPolicy::Next, FoldPolicy::Both).map(Instant::from_secs);
    shown.any(|at| schedule.next(at.minus(Span::from_secs(1))) == Some(at))
}

/// The dates of all hits that are like the first.
fn dates(hits: &[ClockChangeHit]) -> String {
    let times = |hit: &ClockChangeHit| (hit.what, [hit.local, hit.from, hit.until].map(WallTime::second_of_day));
    let alike = hits.iter().filter(|hit| hits.first().map(times) == Some(times(hit)));
    let days: Vec<String> = alike.take(DATES).map(|hit| hit.local.day().to_string()).collect();
    days.join(" and ")
}

fn time(local: WallTime) -> TimeOfDay {
    TimeOfDay(local.second_of_day())
}

fn gap_warning(hit: ClockChangeHit, dates: &str, zone: &str, gap: GapPolicy) -> LintWarning {
    let until = time(hit.until);
    let (outcome, hint) = match (hit.what, gap) {
        (ClockChangeKind::Run, GapPolicy::Next) => {
            (format!("it runs once at {until} instead"), "`gap: skip` leaves such a day out")
        }
        (ClockChangeKind::Run, GapPolicy::Skip) => {
            ("it does not run then".to_owned(), "`gap: next` runs it at the end of the gap")
        }
        (ClockChangeKind::WindowBegins, GapPolicy::Next) => {
            (format!("it begins at {until} instead"), "`gap: skip` leaves out the window of such a day")
        }
        (ClockChangeKind::WindowEnds, GapPolicy::Next) => {
            (format!("it ends at {until} instead"), "`gap: skip` leaves out the window of such a day")
        }
        (_, GapPolicy::Skip) => ("there is no window then".to_owned(), "`gap: next` moves it to the end of the gap"),
    };
    let subject = subject(hit, "does not exist");
    let from = time(hit.from);
    let message = format!("{subject} on {dates} in {zone} (the clock goes from {from} to {until}): {outcome}");
    LintWarning { lint: LintKind::Gap, message, hint: hint.to_owned() }
}

fn fold_warning(hit: ClockChangeHit, dates: &str, zone: &str, fold: FoldPolicy) -> LintWarning {
    let (outcome, hint) = match (hit.what, fold) {
        (ClockChangeKind::Run, FoldPolicy::First) => {
            ("it runs the first time only", "write `fold: second` or `fold: both` to change that")
        }
        (ClockChangeKind::Run, FoldPolicy::Second) => {
            ("it runs the second time only", "write `fold: first` or `fold: both` to change that")
        }
        (ClockChangeKind::Run, FoldPolicy::Both) => {
            ("it runs both times", "`fold: first` or `fold: second` run it once")
        }
        (ClockChangeKind::WindowBegins, FoldPolicy::First | FoldPolicy::Both) => {
            ("it begins the first time", "write `fold: second` to change that")
        }
        (ClockChangeKind::WindowBegins, FoldPolicy::Second) => {
            ("it begins the second time", "write `fold: first` to change that")
        }
        (ClockChangeKind::WindowEnds, FoldPolicy::First) => {
            ("it ends the first time", "`fold: both` ends it the second time")
        }
        (ClockChangeKind::WindowEnds, FoldPolicy::Second | FoldPolicy::Both) => {
            ("it ends the second time", "write `fold: first` to change that")
        }
    };
    let subject = subject(hit, "comes twice");
    let (from, until) = (time(hit.from), time(hit.until));
    let message = format!("{subject} on {dates} in {zone} (the clock goes from {until} back to {from}): {outcome}");
    LintWarning { lint: LintKind::Fold, message, hint: hint.to_owned() }
}

fn subject(hit: ClockChangeHit, does: &str) -> String {
    let at = time(hit.local);
    match hit.what {
        ClockChangeKind::Run => format!("{at} {does}"),
        ClockChangeKind::WindowBegins => format!("its window begins at {at}, which {does}"),
        ClockChangeKind::WindowEnds => format!("its window ends at {at}, which {does}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::{CalendarExpr, CalendarSet};
    use crate::schedule::CompileContext;
    use crate::zone::{Zone, ZoneRegistry};

    #[test]
    fn finds_given_times() {
        let (zones, utc, calendars) = (ZoneRegistry::bundled(), Zone::utc(), CalendarSet::new());
        let around = CompileContext { zones: &zones, zone: &utc, calendars: &calendars, job: "job" };
        for (at, calendar, expected) in [
            (&["2026-03-29T02:30", "2026-10-25T02:00"][..], None, &["2026-03-29T02:30", "2026-10-25T02:00"][..]),
            (&["2026-03-29T03:00", "2026-03-30T02:30", "2026-10-25T00:30:00Z"], None, &[]),
            (&["2026-03-29T02:30"], Some("Sun"), &["2026-03-29T02:30"]),
            (&["2026-03-29T02:30"], Some("Mon-Fri"), &[]),
        ] {
            let bounds = at.iter().map(|text| TimeBound::parse(text).expect(text)).collect();
            let calendar = calendar.map(|text| CalendarExpr::parse(text).expect(text));
            let spec = ScheduleSpec {
                zone: Some("Europe/Berlin".to_owned()),
                calendar,
                ..ScheduleSpec::new(Timing::at(bounds))
            };
            let schedule = Schedule::compile(&spec, around).expect("compiles");
            let now = Instant::parse("2026-01-01T00:00:00Z").expect("valid");
            let changes = schedule.zone().changes(now.secs(), now.plus(AHEAD).secs());
            let hits = changes.filter_map(|change| hit(&spec, &schedule, change));
            assert_eq!(hits.map(|hit| hit.local.to_string()).collect::<Vec<_>>(), expected, "{spec}");
        }
    }
}
