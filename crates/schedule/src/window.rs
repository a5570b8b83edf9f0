//! Steps within a window on each day of a calendar. Steps count elapsed time from the window's first instant, so this
//! code works on instants and not on local times.

use crate::calendar::Calendar;
use crate::civil::{Day, WallTime};
use crate::daily::shifted;
use crate::spec::{DailyInterval, FoldPolicy, WindowEdge};
use crate::walk::SeamPolicy;
use crate::zone::Zone;

/// The search stops after this many consecutive days without a valid window.
const ROOMLESS_MAX: u32 = 400;

/// A window on each calendar day.
#[derive(Debug, Clone)]
pub(crate) struct DailyWindows {
    from: WindowEdge,
    until: WindowEdge,
    interval: i64,
    calendar: Calendar,
    seams: SeamPolicy,
}

/// One day's window: its first second, and the first second after it.
#[derive(Debug, Clone, Copy)]
struct DayWindow {
    day: Day,
    start: i64,
    end: i64,
}

impl DailyWindows {
    pub(crate) fn new(spec: &DailyInterval, calendar: Calendar, seams: SeamPolicy) -> Self {
        let interval = i64::try_from(spec.interval.secs()).unwrap_or(i64::MAX).max(1);
        Self { from: spec.from, until: spec.until, interval, calendar, seams }
    }

    /// The clock change policy of its edges.
    pub(crate) fn seams(&self) -> SeamPolicy {
        self.seams
    }

    pub(crate) fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// The first occurrence strictly after a second of Unix time.
    pub(crate) fn next(&self, zone: &Zone, after: i64) -> Option<i64> {
        // Start two days before any calendar day whose window can reach beyond `after`: offsets and gaps shift less
        // than that.
        let first = self.calendar_day_near(self.until, zone.local(after).day().plus(-2));
        let mut best: Option<i64> = None;
        for window in self.windows(zone, first, day_after) {
            if best.is_some_and(|best| window.start >= best) {
                break;
            }
            best = [best, self.first_after(window, after)].into_iter().flatten().min();
        }
        best
    }

    /// The last occurrence strictly before a second of Unix time.
    pub(crate) fn prev(&self, zone: &Zone, before: i64) -> Option<i64> {
        let near = zone.local(before).day().plus(2);
        let last = self.calendar.prev(near.plus(-self.from.shift.days)).and_then(|day| {
            // If the shift leads out of the calendar, start from its last day.
            self.calendar.shift(day, -self.from.shift.calendar_days).or_else(|| self.calendar.prev(Day(i32::MAX)))
        });
        let mut best: Option<i64> = None;
        for window in self.windows(zone, last, day_before) {
            if best.is_some_and(|best| window.end <= best) {
                break;
            }
            best = best.max(self.last_before(window, before));
        }
        best
    }

    /// The calendar day of an occurrence; of overlapping windows the latest.
    pub(crate) fn calendar_day(&self, zone: &Zone, at: i64) -> Option<Day> {
        let first = self.calendar_day_near(self.until, zone.local(at).day().plus(-2));
        let until_then = self.windows(zone, first, day_after).take_while(|window| window.start <= at);
        let own = until_then.filter(|window| at < window.end && (at - window.start) % self.interval == 0);
        own.last().map(|window| window.day)
    }

    /// Windows from a calendar day on. Ends after `ROOMLESS_MAX` consecutive days without a valid window.
    fn windows<'a>(
        &'a self,
        zone: &'a Zone,
        first: Option<Day>,
        step: fn(&Calendar, Day) -> Option<Day>,
    ) -> impl Iterator<Item = DayWindow> + 'a {
        let mut roomless = 0;
        std::iter::successors(first, move |day| step(&self.calendar, *day))
            .map(|day| self.window(zone, day))
            .take_while(move |window| {
                roomless = if window.is_some() { 0 } else { roomless + 1 };
                roomless <= ROOMLESS_MAX
            })
            .flatten()
    }

    /// A calendar day whose edge is near `near` or before it.
    fn calendar_day_near(&self, edge: WindowEdge, near: Day) -> Option<Day> {
        let on_calendar = self.calendar.prev(near.plus(-edge.shift.days));
        let day = on_calendar.and_then(|day| self.calendar.shift(day, -edge.shift.calendar_days));
        day.or_else(|| self.calendar.next(Day(i32::MIN)))
    }

    /// The window of a calendar day. `None` if an edge does not exist or the window is empty.
    fn window(&self, zone: &Zone, day: Day) -> Option<DayWindow> {
        let from = self.edge(self.from, day)?;
        let until = self.edge(self.until, day)?;
        let instant = |local, fold| zone.instants(local, self.seams.gap, fold).next();
        let start =
            instant(from, if self.seams.fold == FoldPolicy::Second { FoldPolicy::Second } else { FoldPolicy::First })?;
        let end =
            instant(until, if self.seams.fold == FoldPolicy::First { FoldPolicy::First } else { FoldPolicy::Second })?;
        // A window that lies entirely in a gap runs once at its end, like a time of day.
        let swallowed = start == end && from < until;
        (start < end || swallowed).then_some(DayWindow { day, start, end: end.max(start + 1) })
    }

    fn edge(&self, edge: WindowEdge, day: Day) -> Option<WallTime> {
        let day = shifted(&self.calendar, edge.shift, day)?;
        Some(WallTime(day.midnight().0 + i64::from(edge.time.0)))
    }

    fn first_after(&self, window: DayWindow, after: i64) -> Option<i64> {
        let at = if after < window.start {
            window.start
        } else {
            window.start + ((after - window.start) / self.interval + 1).saturating_mul(self.interval)
        };
        (at < window.end).then_some(at)
    }

    fn last_before(&self, window: DayWindow, before: i64) -> Option<i64> {
        let last = (before - 1).min(window.end - 1);
        (last >= window.start).then(|| window.start + (last - window.start) / self.interval * self.interval)
    }
}

fn day_after(calendar: &Calendar, day: Day) -> Option<Day> {
    calendar.next(day.plus(1))
}

fn day_before(calendar: &Calendar, day: Day) -> Option<Day> {
    calendar.prev(day.plus(-1))
}
