//! Sentences about an occurrence.

use cronhold_schedule::Instant;

use super::super::fact::{OccurrenceOutcome, TimePosition};
use super::super::reasons::{because, by};
use super::{ExplanationWriter, counted, doctor, name};
use crate::record::{PauseState, Run, ScheduleId, SkipSpan};
use crate::run::Reason;

/// The most runs of one occurrence that are listed; further ones are only counted. A job can have a run on each node.
const RUNS_SHOWN: usize = 20;

impl ExplanationWriter<'_> {
    pub(super) fn no_occurrence(&mut self, at: Instant) {
        let at = self.at(at);
        let job = &self.why.job;
        self.say(format!("`{job}` has no occurrence at {at}."));
    }

    pub(super) fn occurrence(
        &mut self,
        schedule: Option<&ScheduleId>,
        nominal: Instant,
        place: TimePosition,
        outcome: &OccurrenceOutcome,
    ) {
        if let OccurrenceOutcome::Runs(runs) = outcome {
            for run in &runs[..runs.len().min(RUNS_SHOWN)] {
                self.became(schedule, nominal, place, run);
            }
            if let Some(more) = runs.len().checked_sub(RUNS_SHOWN).filter(|more| *more > 0) {
                self.say(format!("{more} more runs are for it on other nodes."));
                self.advise(format!("`cronhold runs {}` shows them all", self.why.job));
            }
            return;
        }
        let which = self.which(schedule, nominal, place);
        match outcome {
            OccurrenceOutcome::Runs(_) => {}
            OccurrenceOutcome::Span(span) => self.span(&which, nominal, span),
            OccurrenceOutcome::Backlog { ahead, .. } => {
                let ahead = counted(*ahead, "occurrence");
                self.say(format!("{which} was missed and is to be caught up: {ahead} are before it."));
            }
            OccurrenceOutcome::Coming { paused } => {
                let held = if *paused { ", unless the pause holds until then" } else { "" };
                self.say(format!("{which} is still to come, in {}{held}.", self.ahead(nominal)));
            }
            OccurrenceOutcome::Resting => {
                self.say(format!("{which} was not started: the job or everything is paused."));
                self.advise("its outcome is recorded when the pause ends, according to `catch_up`".to_owned());
            }
            OccurrenceOutcome::Due => {
                self.say(format!("{which} is due, and no node has claimed it yet."));
                self.advise("`cronhold nodes` shows whether a node is running".to_owned());
            }
            OccurrenceOutcome::Disabled => {
                self.say(format!("{which} does not run: its schedule is disabled."));
                self.advise("`enabled: true` in the job enables it".to_owned());
            }
            OccurrenceOutcome::BeforeSchedule(since) => {
                let since = self.wall(schedule).at(*since);
                self.say(format!(
                    "{which} has no record: its schedule has been in effect only since {since}, when it was created, \
                     enabled or changed."
                ));
            }
            OccurrenceOutcome::NotKept(from) => {
                let from = self.wall(schedule).at(*from);
                self.say(format!("{which} has no record any more: not all runs before {from} are kept."));
                self.advise("`retain` in the job sets how many are kept".to_owned());
            }
            OccurrenceOutcome::NoCursor => {
                if let Some(schedule) = schedule {
                    self.no_cursor(schedule);
                }
            }
            OccurrenceOutcome::Hole => {
                self.say(format!(
                    "{which} has no record: no run, no skip, and it is not pending. This is a defect of \
                     Cronhold, not of the job."
                ));
                self.advise(doctor(&self.why.job));
            }
        }
    }

    /// An occurrence as the subject of a sentence.
    fn which(&self, schedule: Option<&ScheduleId>, nominal: Instant, place: TimePosition) -> String {
        let at = self.wall(schedule).at(nominal);
        let of = schedule.and_then(|id| self.label(id)).map(|label| format!(" of `{label}`")).unwrap_or_default();
        match place {
            TimePosition::Exact => format!("The occurrence{of} at {at}"),
            TimePosition::Before => format!("The occurrence{of} before it, at {at},"),
            TimePosition::After => format!("The occurrence{of} after it, at {at},"),
        }
    }

    /// One attempt of an occurrence, or a requested run.
    fn became(&mut self, schedule: Option<&ScheduleId>, nominal: Instant, place: TimePosition, run: &Run) {
        let (name, fate) = (name(run), self.fate(run));
        let again = run.rerun_of.map(|first| format!(", a rerun of `{}`", self.run_name(first))).unwrap_or_default();
        let on = run.target.map(|node| format!(" on {}", self.node_name(node))).unwrap_or_default();
        let text = if schedule.is_none() {
            let at = self.wall(None).at(nominal);
            let who = run.creator().map_or_else(|| "an unknown actor".to_owned(), by);
            format!("`{name}`{on}{again}, created for {at} by {who}, {fate}.")
        } else if run.attempt > 1 {
            format!("Attempt {}, `{name}`{on}, {fate}.", run.attempt)
        } else {
            format!("{} became `{name}`{on}{again}, which {fate}.", self.which(schedule, nominal, place))
        };
        self.say(text);
        self.log(run);
        self.advise_on(run, schedule);
    }

    /// An occurrence that was skipped together with others.
    fn span(&mut self, which: &str, nominal: Instant, span: &SkipSpan) {
        self.say(format!("{which} was skipped, because {}.", because(&span.reason, self.world)));
        let wall = self.wall(Some(&span.schedule));
        let (from, to) = (wall.at(span.range.from), wall.at(span.range.to));
        let count = counted(span.range.count, "occurrence");
        self.detail(format!("`{}#{}` stands for {count} from {from} to {to}.", span.job, span.number));
        if span.reason == Reason::Paused {
            let everything = Some(self.known.pauses.as_ref());
            self.last_pause("Everything", everything.cloned(), nominal);
            self.last_pause("The job", self.known.own_pauses().cloned(), nominal);
        }
        self.advise_on_skip(&span.reason, true);
    }

    /// Start and end of the last pause, if it covers the occurrence.
    fn last_pause(&mut self, what: &str, pauses: Option<PauseState>, nominal: Instant) {
        let Some((from, to)) = pauses.and_then(|pauses| pauses.last) else { return };
        if from <= nominal && nominal <= to {
            self.detail(format!("{what} was paused from {} to {}.", self.at(from), self.at(to)));
        }
    }
}
