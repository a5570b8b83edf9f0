//! Holes: occurrences without an outcome. They must never exist. The search computes the occurrences of a schedule
//! again and expects each in a run, in a span of skips, in a backlog, or ahead of the cursor.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use cronhold_schedule::{CompileError, Instant, Span, Timing};

use crate::policy::catch_up::{CountedRange, GRACE};
use crate::record::{Cursor, ScheduleId};
use crate::why::ledger::{CoveredRange, Ledger};
use crate::why::{ExplanationClock, ExplanationLine, KnownRecords, Tone, doctor};
use crate::world::DecisionContext;

/// The most occurrences that one search checks, all schedules of the job together.
pub const STEPS_MAX: u32 = 100_000;

/// An occurrence that is due for longer than this is overdue: it is no longer on time, and every watchdog of a running
/// node has had the time to find it.
pub const OVERDUE_AFTER: Span = GRACE.plus(Span::from_secs(60));

/// The result of a search for holes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HoleReport {
    /// Ranges of consecutive occurrences without an outcome, ordered by schedule and then by time.
    pub found: Vec<Hole>,
    /// Schedules whose next occurrence is due for so long that a node should have claimed it.
    pub overdue: Vec<OverdueSchedule>,
    /// The parts that could not be checked.
    pub unchecked: Vec<UncheckedPart>,
}

/// A schedule whose next occurrence no node has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverdueSchedule {
    /// The schedule within the job.
    pub schedule: ScheduleId,
    /// The nominal time of the occurrence.
    pub next: Instant,
    /// When it was due.
    pub due: Instant,
}

/// Consecutive occurrences of one schedule without an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// The schedule within the job.
    pub schedule: ScheduleId,
    /// The occurrences without an outcome.
    pub stretch: CountedRange,
}

/// A part that could not be checked.
#[derive(Debug, Clone, PartialEq)]
pub struct UncheckedPart {
    /// The schedule within the job.
    pub schedule: ScheduleId,
    /// Why it could not be checked.
    pub because: UncheckedReason,
}

/// Why a part could not be checked.
#[derive(Debug, Clone, PartialEq)]
pub enum UncheckedReason {
    /// The schedule does not compile: its zone or calendar does not exist.
    CannotAsk(CompileError),
    /// The schedule is enabled and has no cursor, so nothing claims its occurrences.
    NoCursor,
    /// Runs before this time are no longer stored.
    NotKept(Instant),
    /// The cursor follows this release of the zone data, and the data of the search gives occurrences without a record.
    /// They may not exist by the other release.
    OtherZoneData(Arc<str>),
    /// The search reached [`STEPS_MAX`] here. The next search continues from this occurrence.
    Cut(Instant),
}

/// Finds the occurrences of a job's enabled schedules between two instants that have no outcome. `to` must not be in
/// the future, and `known` must contain all stored runs of the job.
pub fn holes(known: &KnownRecords, world: &DecisionContext, from: Instant, to: Instant) -> HoleReport {
    let mut holes = HoleReport::default();
    let Some(job) = &known.job else { return holes };
    let kept_from = known.kept_from();
    let mut steps = STEPS_MAX;
    for (id, schedule) in job.schedules().filter(|(_, schedule)| job.job.enables(schedule) && is_by_time(schedule)) {
        let mut unchecked = |because| holes.unchecked.push(UncheckedPart { schedule: id.clone(), because });
        let Some(cursor) = known.cursors.iter().find(|cursor| cursor.job == job.id && cursor.schedule == *id) else {
            unchecked(UncheckedReason::NoCursor);
            continue;
        };
        if let Some((next, due)) = cursor.next.zip(cursor.wake)
            && due.plus(OVERDUE_AFTER) < to
            && !known.is_paused()
        {
            holes.overdue.push(OverdueSchedule { schedule: id.clone(), next, due });
        }
        let compiled = match job.compile(schedule, world) {
            Ok(compiled) => compiled,
            Err(error) => {
                unchecked(UncheckedReason::CannotAsk(error));
                continue;
            }
        };
        let mut after = just_before(from).max(cursor.since);
        if let Some(kept_from) = kept_from.filter(|kept_from| just_before(*kept_from) > after) {
            after = just_before(kept_from);
            unchecked(UncheckedReason::NotKept(kept_from.min(to)));
        }
        let walk = HoleSearch { covered: &Ledger::of(job, id, known).covered(), until: until(cursor, to) };
        let (found, cut) = walk.along(compiled.coming(after), &mut steps);
        cut.into_iter().for_each(|at| unchecked(UncheckedReason::Cut(at)));
        let has_other_data = compiled.depends_on_zone_data() && cursor.zones != world.zones_version;
        if has_other_data && !found.is_empty() {
            unchecked(UncheckedReason::OtherZoneData(cursor.zones.clone()));
            continue;
        }
        holes.found.extend(found.into_iter().map(|stretch| Hole { schedule: id.clone(), stretch }));
    }
    holes
}

impl HoleReport {
    /// The result as text. The records and the context must be the ones that [`holes`] used.
    pub fn words(&self, known: &KnownRecords, world: &DecisionContext) -> Vec<ExplanationLine> {
        let Some(job) = &known.job else { return Vec::new() };
        let mut lines = Vec::new();
        let mut push = |tone, text| lines.push(ExplanationLine { tone, text });
        for Hole { schedule, stretch: CountedRange { from, to, count } } in &self.found {
            let wall = ExplanationClock::of(Some(schedule), known, world);
            let text = match count {
                1 => format!("`{}` has no record of its occurrence at {}.", job.id, wall.at(*from)),
                _ => format!(
                    "`{}` has no record of {count} occurrences from {} to {}.",
                    job.id,
                    wall.at(*from),
                    wall.at(*to)
                ),
            };
            push(Tone::Answer, text);
        }
        if !self.found.is_empty() {
            push(Tone::Advice, format!("this is a defect of Cronhold: {}", doctor(&job.id)));
        }
        for OverdueSchedule { schedule, next, due } in &self.overdue {
            let wall = ExplanationClock::of(Some(schedule), known, world);
            let late = if next == due { String::new() } else { format!(", due at {},", wall.at(*due)) };
            push(
                Tone::Answer,
                format!("`{}`: no node has claimed the occurrence at {}{late} yet.", job.id, wall.at(*next)),
            );
        }
        if !self.overdue.is_empty() {
            push(Tone::Advice, format!("is a node running that may run it? see `cronhold why {}`", job.id));
        }
        for UncheckedPart { schedule, because } in &self.unchecked {
            let wall = ExplanationClock::of(Some(schedule), known, world);
            let not_checked = format!("The schedule `{schedule}` of `{}` was not checked", job.id);
            let text = match because {
                UncheckedReason::CannotAsk(error) => {
                    format!("{not_checked}: `{}`: {}.", error.key, error.error.message)
                }
                UncheckedReason::NoCursor => {
                    format!("{not_checked}: it has no cursor, which is a defect of Cronhold.")
                }
                UncheckedReason::NotKept(at) => {
                    format!("{not_checked} before {}: not all runs are kept.", wall.at(*at))
                }
                UncheckedReason::OtherZoneData(theirs) => format!(
                    "{not_checked}: its nodes use time zone data {theirs}, and this search used {}, which differs.",
                    world.zones_version
                ),
                UncheckedReason::Cut(at) => {
                    format!("{not_checked} from {} on: it has too many occurrences.", wall.at(*at))
                }
            };
            push(Tone::Answer, text);
        }
        lines
    }
}

/// Whether the occurrences of a schedule follow from the schedule alone.
fn is_by_time(schedule: &crate::job::JobSchedule) -> bool {
    !matches!(schedule.spec.timing, Timing::After { .. } | Timing::Triggered | Timing::Never | Timing::Reboot)
}

/// The last instant at which an occurrence must have an outcome. From the cursor's `next` on, occurrences are pending,
/// even if they are late or a pause delays them.
fn until(cursor: &Cursor, to: Instant) -> Instant {
    cursor.next.map_or(to, |next| just_before(next).min(to))
}

fn just_before(at: Instant) -> Instant {
    at.minus(Span::from_micros(1))
}

/// Compares the occurrences of one schedule with its records.
struct HoleSearch<'a> {
    /// Sorted by their start.
    covered: &'a [CoveredRange],
    until: Instant,
}

impl HoleSearch<'_> {
    /// The ranges that no record covers, and the occurrence at which `steps` ran out.
    fn along(
        &self,
        occurrences: impl Iterator<Item = Instant>,
        steps: &mut u32,
    ) -> (Vec<CountedRange>, Option<Instant>) {
        let mut found: Vec<CountedRange> = Vec::new();
        let mut covered = self.covered.iter().peekable();
        // The latest end of the covered ranges that have started: everything up to it is covered.
        let mut reach = None;
        let mut is_open = false;
        for at in occurrences.take_while(|at| *at <= self.until) {
            if *steps == 0 {
                return (found, Some(at));
            }
            *steps -= 1;
            while let Some((_, to)) = covered.next_if(|(from, _)| *from <= at) {
                reach = reach.max(Some(*to));
            }
            if reach >= Some(at) {
                is_open = false;
                continue;
            }
            match found.last_mut().filter(|_| is_open) {
                Some(stretch) => {
                    stretch.to = at;
                    stretch.count += 1;
                }
                None => found.push(CountedRange { from: at, to: at, count: 1 }),
            }
            is_open = true;
        }
        (found, None)
    }
}
