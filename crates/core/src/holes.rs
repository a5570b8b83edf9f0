//! Occurrences without an outcome: what must never be there. A schedule yields its occurrences once more, and each has
//! to be found in a run, in a span of skips, in a backlog, or still ahead of the cursor.

#[cfg(test)]
mod tests;

use cronhold_schedule::{CompileError, Instant, Span, Timing};

use crate::policy::catch_up::CountedRange;
use crate::record::{Cursor, ScheduleId};
use crate::why::ledger::{CoveredRange, Ledger};
use crate::why::{ExplanationClock, ExplanationLine, KnownRecords, Tone, doctor};
use crate::world::DecisionContext;

/// Occurrences that are looked at in one go, those of all schedules of the job together.
pub const STEPS_MAX: u32 = 100_000;

/// The result of a search for holes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HoleReport {
    /// Stretches of neighbouring occurrences without an outcome, schedule by schedule, each in order of time.
    pub found: Vec<Hole>,
    /// The parts that could not be checked.
    pub unchecked: Vec<UncheckedPart>,
}

/// Neighbouring occurrences of one schedule without an outcome.
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
    /// It is enabled and has no cursor, so that nothing will ever claim its occurrences.
    NoCursor,
    /// Runs before this are not kept.
    NotKept(Instant),
    /// There were too many occurrences; the next search begins here.
    Cut(Instant),
}

/// Looks for occurrences of the enabled schedules of a job from one instant to another that have no outcome. The end is
/// not after the present, and all stored runs of the job have to be known.
pub fn holes(known: &KnownRecords, world: &DecisionContext, from: Instant, to: Instant) -> HoleReport {
    let mut holes = HoleReport::default();
    let Some(job) = &known.job else { return holes };
    let kept_from = known.kept_from();
    let mut steps = STEPS_MAX;
    for (id, schedule) in job.schedules().filter(|(_, schedule)| schedule.enabled && is_by_time(schedule)) {
        let mut unchecked = |because| holes.unchecked.push(UncheckedPart { schedule: id.clone(), because });
        let Some(cursor) = known.cursors.iter().find(|cursor| cursor.job == job.id && cursor.schedule == *id) else {
            unchecked(UncheckedReason::NoCursor);
            continue;
        };
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
        holes.found.extend(found.into_iter().map(|stretch| Hole { schedule: id.clone(), stretch }));
    }
    holes
}

impl HoleReport {
    /// What was found in words. The records and the world are those that it was made of.
    pub fn words(&self, known: &KnownRecords, world: &DecisionContext) -> Vec<ExplanationLine> {
        let Some(job) = &known.job else { return Vec::new() };
        let mut lines = Vec::new();
        let mut say = |tone, text| lines.push(ExplanationLine { tone, text });
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
            say(Tone::Answer, text);
        }
        if !self.found.is_empty() {
            say(Tone::Advice, format!("that must never be, and is a defect of Cronhold: {}", doctor(&job.id)));
        }
        for UncheckedPart { schedule, because } in &self.unchecked {
            let wall = ExplanationClock::of(Some(schedule), known, world);
            let of = format!("Of the schedule `{schedule}` of `{}`", job.id);
            let text = match because {
                UncheckedReason::CannotAsk(error) => {
                    format!("{of} nothing could be checked: `{}`: {}.", error.key, error.error.message)
                }
                UncheckedReason::NoCursor => {
                    format!("{of} nothing could be checked: it has no cursor, which is a defect.")
                }
                UncheckedReason::NotKept(at) => {
                    format!("{of} nothing before {} was checked: not all runs are kept.", wall.at(*at))
                }
                UncheckedReason::Cut(at) => {
                    format!("{of} nothing from {} on was checked: there are too many.", wall.at(*at))
                }
            };
            say(Tone::Answer, text);
        }
        lines
    }
}

/// Whether the occurrences of a schedule can be told from the schedule alone.
fn is_by_time(schedule: &crate::job::JobSchedule) -> bool {
    !matches!(schedule.spec.timing, Timing::After { .. } | Timing::Triggered | Timing::Never | Timing::Reboot)
}

/// The last moment at which an occurrence must have an outcome. From the cursor's next on they are still to come, be
/// they late or held back by a pause.
fn until(cursor: &Cursor, to: Instant) -> Instant {
    cursor.next.map_or(to, |next| just_before(next).min(to))
}

fn just_before(at: Instant) -> Instant {
    at.minus(Span::from_micros(1))
}

/// A walk along the occurrences and the records of one schedule, side by side.
struct HoleSearch<'a> {
    /// In order of where they begin.
    covered: &'a [CoveredRange],
    until: Instant,
}

impl HoleSearch<'_> {
    /// The stretches that nothing covers, and where the walk was cut short.
    fn along(
        &self,
        occurrences: impl Iterator<Item = Instant>,
        steps: &mut u32,
    ) -> (Vec<CountedRange>, Option<Instant>) {
        let mut found: Vec<CountedRange> = Vec::new();
        let mut covered = self.covered.iter().peekable();
        // Everything from the beginning of a part that has begun up to here is covered.
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
