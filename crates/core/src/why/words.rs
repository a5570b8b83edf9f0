//! Explanations as text: short full sentences, each with what the user can do about it.

mod past;
mod present;
mod runs;

use std::fmt;

use cronhold_schedule::{CompileError, Instant, Span};

use super::wall::rough;
use super::{Explanation, ExplanationClock, Fact, KnownRecords};
use crate::ids::{NodeId, RunId};
use crate::policy::catch_up::COUNT_MAX;
use crate::record::{Run, ScheduleId};
use crate::world::DecisionContext;

/// One line of an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplanationLine {
    /// The kind of the line.
    pub tone: Tone,
    /// The text, without a prefix for its kind.
    pub text: String,
}

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A sentence of the explanation.
    Answer,
    /// A detail of the sentence before it, such as an entry of a log.
    Detail,
    /// What the user can do about the sentence before it.
    Advice,
}

impl fmt::Display for ExplanationLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = match self.tone {
            Tone::Answer => "",
            Tone::Detail => "  ",
            Tone::Advice => "  hint: ",
        };
        write!(f, "{before}{}", self.text)
    }
}

impl Explanation {
    /// The explanation as text. The records and the context must be the ones that [`why`](super::why()) used.
    pub fn words(&self, known: &KnownRecords, world: &DecisionContext) -> Vec<ExplanationLine> {
        let mut writer = ExplanationWriter { why: self, known, world, lines: Vec::new() };
        for fact in &self.facts {
            match fact {
                Fact::NoOccurrence(at) => writer.no_occurrence(*at),
                Fact::Occurrence { schedule, nominal, place, outcome } => {
                    writer.occurrence(schedule.as_ref(), *nominal, *place, outcome);
                }
                present => writer.present(present),
            }
        }
        writer.lines
    }
}

/// Advice for a defect of Cronhold.
pub(crate) fn doctor(job: &impl fmt::Display) -> String {
    format!("please report it with the output of `cronhold doctor`; `cronhold run {job}` runs the job now")
}

/// A number of occurrences. Counting stops at `COUNT_MAX`.
pub(super) fn counted(count: u32, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        COUNT_MAX.. => format!("at least {COUNT_MAX} {noun}s"),
        _ => format!("{count} {noun}s"),
    }
}

/// Collects the lines of an explanation.
struct ExplanationWriter<'a> {
    why: &'a Explanation,
    known: &'a KnownRecords,
    world: &'a DecisionContext,
    lines: Vec<ExplanationLine>,
}

impl ExplanationWriter<'_> {
    fn say(&mut self, text: String) {
        self.lines.push(ExplanationLine { tone: Tone::Answer, text });
    }

    fn detail(&mut self, text: String) {
        self.lines.push(ExplanationLine { tone: Tone::Detail, text });
    }

    fn advise(&mut self, text: String) {
        self.lines.push(ExplanationLine { tone: Tone::Advice, text });
    }

    /// A time in the job's zone.
    fn at(&self, at: Instant) -> String {
        self.wall(None).at(at)
    }

    fn wall(&self, schedule: Option<&ScheduleId>) -> ExplanationClock {
        ExplanationClock::of(schedule, self.known, self.world)
    }

    fn ago(&self, at: Instant) -> Span {
        rough(self.why.now.since(at))
    }

    fn ahead(&self, at: Instant) -> Span {
        rough(at.since(self.why.now))
    }

    /// The name of a run, as commands accept it.
    fn run_name(&self, id: RunId) -> String {
        self.known.run(id).map_or_else(|| id.to_string(), |run| name(run))
    }

    /// The name of a node; its id if the node is unknown.
    fn node_name(&self, id: NodeId) -> String {
        let known = self.known.nodes.iter().find(|node| node.id == id);
        known.map_or_else(|| format!("node {id}"), |node| format!("`{}`", node.name))
    }

    /// A schedule as the subject of a sentence.
    fn schedule(&self, id: &ScheduleId) -> String {
        self.label(id).map_or_else(|| "Its schedule".to_owned(), |label| format!("The schedule `{label}`"))
    }

    /// The name of a schedule, or else its text; `None` if it is the only schedule of the job.
    fn label(&self, id: &ScheduleId) -> Option<String> {
        let job = self.known.job.as_ref();
        match job.and_then(|job| job.schedule(id)) {
            None => Some(id.to_string()),
            Some(_) if job.is_some_and(|job| job.job.schedules.len() == 1) => None,
            Some(schedule) => Some(schedule.name.clone().unwrap_or_else(|| schedule.spec.to_string())),
        }
    }

    fn cannot_ask(&mut self, schedule: &ScheduleId, error: &CompileError) {
        let schedule = self.schedule(schedule);
        let CompileError { key, error } = error;
        self.say(format!("{schedule} cannot be used: `{key}`: {}.", error.message));
        let hint = error.hint.as_deref().unwrap_or("correct it in the job, then store the job again");
        self.advise(hint.to_owned());
    }

    fn no_cursor(&mut self, schedule: &ScheduleId) {
        let schedule = self.schedule(schedule);
        self.say(format!(
            "{schedule} is enabled and has no cursor, so nothing claims its occurrences. This is a \
             defect of Cronhold, not of the job."
        ));
        self.advise(doctor(&self.why.job));
    }
}

/// The name of a run, such as `backup#42`.
fn name(run: &Run) -> String {
    format!("{}#{}", run.job, run.number)
}
