//! What the follower reports to the daemon, which logs it and shows it to users.

use std::fmt;

use cronhold_core::JobId;
use cronhold_jobfile::foreign::{FieldMistake, FormNote};
use cronhold_schedule::text::shortened;
use cronhold_store::{DefinitionRules, NodeListChange};

/// Job ids that a message lists; it only counts the others.
const IDS_SHOWN_MAX: usize = 5;

/// Receives what the follower reports. Its methods must not block.
pub trait FollowerObserver: Send + Sync + fmt::Debug {
    /// Something happened that an operator may want to know.
    fn on_report(&self, report: &SharedJobReport);

    /// Replaces the invalid definitions that the daemon shows.
    fn set_invalid_definitions(&self, invalid: Vec<InvalidDefinition>);

    /// The follower committed to the store without changing a job. On an idle node this is the first sign that a store
    /// works again.
    fn on_commit(&self);
}

/// A mistake in a shared definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidDefinition {
    /// The job that the definition is for.
    pub job: JobId,
    /// The field and what is wrong with it.
    pub mistake: FieldMistake,
}

/// How important a report is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportLevel {
    /// Of interest while looking for the cause of a problem.
    Debug,
    /// A normal event.
    Info,
    /// An operator should check it.
    Warn,
}

/// Something that happened to the jobs and events shared with Cronken. `Display` writes the line for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedJobReport {
    /// Cronken's nodes run the same jobs from now on.
    ForeignNodesArrived,
    /// Cronken's nodes do not run the same jobs any longer.
    ForeignNodesLeft,
    /// Servers have joined or left the list that castle-cron's clients see.
    NodeListChanged(NodeListChange),
    /// Jobs were created, changed or removed because of their definitions.
    JobsChanged {
        /// Jobs that are new or changed.
        changed: Vec<JobId>,
        /// Jobs that were removed.
        removed: Vec<JobId>,
    },
    /// Definitions were written for Cronken.
    DefinitionsWritten { count: usize },
    /// A name in the shared hash cannot be a job's id.
    InvalidName { name: String, reason: String },
    /// A definition has mistakes.
    DefinitionInvalid {
        job: JobId,
        mistakes: Vec<FieldMistake>,
        /// Whether the job exists from an earlier definition. It is kept then.
        has_job: bool,
    },
    /// A definition that had mistakes is valid now.
    DefinitionFixed { job: JobId },
    /// A valid definition may not mean what its writer expects.
    DefinitionNote {
        job: JobId,
        /// The field and what may surprise.
        note: FormNote,
    },
    /// A definition was changed although its job comes from a job file. The file wins.
    Overruled { job: JobId },
    /// The node refused the change in a definition.
    JobRefused { job: JobId, reason: String },
    /// Other cron rules apply than before, and the unchanged text of a definition means different times by them.
    ScheduleReread {
        job: JobId,
        /// The rules that apply now.
        rules: DefinitionRules,
        /// The job's times by these rules, in words.
        times: Vec<String>,
    },
    /// All definitions disappeared at once. Their jobs are kept, and the definitions are written again.
    AllDefinitionsLost {
        /// How many jobs are kept.
        kept: usize,
    },
    /// All jobs disappeared at once while their definitions exist. They are created again.
    AllJobsLost,
    /// The definitions could not be read.
    Unreadable { reason: String },
    /// Definitions were validated because an event requested it.
    Validated {
        /// How many were marked as invalid for the first time.
        newly_invalid: usize,
    },
    /// Definitions were not validated although an event requested it.
    NotValidated { reason: String },
    /// An event was received.
    Event {
        /// The text of the event.
        text: String,
        /// The outcome of the event.
        outcome: EventOutcome,
    },
}

/// The outcome of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventOutcome {
    /// This node carried out the event.
    Applied,
    /// Another node has carried it out, or its effect already held.
    AlreadyApplied,
    /// The event was not carried out.
    Ignored { reason: String },
}

impl SharedJobReport {
    /// How important it is.
    pub const fn level(&self) -> ReportLevel {
        match self {
            Self::DefinitionsWritten { .. } | Self::Event { outcome: EventOutcome::AlreadyApplied, .. } => {
                ReportLevel::Debug
            }
            Self::JobsChanged { .. }
            | Self::NodeListChanged(_)
            | Self::DefinitionFixed { .. }
            | Self::DefinitionNote { .. }
            | Self::Overruled { .. }
            | Self::Validated { .. }
            | Self::NotValidated { .. }
            | Self::Event { .. } => ReportLevel::Info,
            Self::ForeignNodesArrived
            | Self::ForeignNodesLeft
            | Self::InvalidName { .. }
            | Self::DefinitionInvalid { .. }
            | Self::JobRefused { .. }
            | Self::ScheduleReread { .. }
            | Self::AllDefinitionsLost { .. }
            | Self::AllJobsLost
            | Self::Unreadable { .. } => ReportLevel::Warn,
        }
    }

    /// The stable name of the report in the log.
    pub const fn event_name(&self) -> &'static str {
        match self {
            Self::ForeignNodesArrived | Self::ForeignNodesLeft => "foreign_nodes_changed",
            Self::NodeListChanged(_) => "servers_changed",
            Self::DefinitionNote { .. } => "foreign_job_note",
            Self::Unreadable { .. } => "foreign_jobs_unreadable",
            Self::Validated { .. } => "foreign_jobs_validated",
            Self::NotValidated { .. } => "foreign_jobs_unvalidated",
            Self::Event { .. } => "foreign_event",
            Self::JobsChanged { .. }
            | Self::DefinitionsWritten { .. }
            | Self::InvalidName { .. }
            | Self::DefinitionInvalid { .. }
            | Self::DefinitionFixed { .. }
            | Self::Overruled { .. }
            | Self::JobRefused { .. }
            | Self::ScheduleReread { .. }
            | Self::AllDefinitionsLost { .. }
            | Self::AllJobsLost => "foreign_job_reconciled",
        }
    }

    fn text(&self) -> String {
        match self {
            Self::ForeignNodesArrived => "nodes of Cronken run the same jobs from now on (peers=cronken)".to_owned(),
            Self::ForeignNodesLeft => "nodes of Cronken no longer run the same jobs (peers=none)".to_owned(),
            Self::NodeListChanged(change) => nodes_text(change),
            Self::JobsChanged { changed, removed } => changes_text(changed, removed),
            Self::DefinitionsWritten { count: 1 } => "1 shared job definition written".to_owned(),
            Self::DefinitionsWritten { count } => format!("{count} shared job definitions written"),
            Self::InvalidName { name, reason } => {
                format!("shared job `{}` is ignored: {reason}", shortened(name))
            }
            Self::DefinitionInvalid { job, mistakes, has_job } => {
                let effect = if *has_job { "the job stays as it was" } else { "it is not run" };
                format!("mistake: shared job {job}: {}; {effect}", mistakes_text(mistakes))
            }
            Self::DefinitionFixed { job } => format!("shared job {job}: the definition is valid again"),
            Self::DefinitionNote { job, note } => format!("note: shared job {job}: {note}"),
            Self::Overruled { job } => format!(
                "the definition of shared job {job} was changed by another program; the job file wins, and the \
                 definition is written again"
            ),
            Self::JobRefused { job, reason } => format!("shared job {job}: {reason}"),
            Self::ScheduleReread { job, rules, times } => {
                let rules = match rules {
                    DefinitionRules::Ours => "cron does",
                    DefinitionRules::Theirs => "Cronken's nodes read it",
                };
                format!("shared job {job} is read as {rules} from now on, and means another time: {}", times.join("; "))
            }
            Self::AllDefinitionsLost { kept } => format!(
                "the definitions of all {kept} shared jobs are gone at once; the jobs are kept and their definitions \
                 written again (`cronhold del` removes jobs)"
            ),
            Self::AllJobsLost => {
                "all jobs are gone at once while their shared definitions exist; the jobs are created again".to_owned()
            }
            Self::Unreadable { reason } => format!("cannot read the shared jobs: {reason}"),
            Self::Validated { newly_invalid } => {
                format!("shared jobs are validated: {newly_invalid} newly marked as invalid")
            }
            Self::NotValidated { reason } => format!("shared jobs are not validated: {reason}"),
            Self::Event { text, outcome } => {
                let text = shortened(text);
                match outcome {
                    EventOutcome::Applied => format!("event {text}: done"),
                    EventOutcome::AlreadyApplied => format!("event {text}: already done"),
                    EventOutcome::Ignored { reason } => format!("event {text}: ignored: {reason}"),
                }
            }
        }
    }
}

impl fmt::Display for SharedJobReport {
    /// One line. Texts of other programs may hold control characters, which are replaced.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text().replace(char::is_control, "?"))
    }
}

/// All mistakes in one line.
pub(crate) fn mistakes_text(mistakes: &[FieldMistake]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn changes_text(changed: &[JobId], removed: &[JobId]) -> String {
    let parts = [("new or changed", changed), ("removed", removed)];
    let parts = parts.iter().filter(|(_, ids)| !ids.is_empty());
    let parts: Vec<String> = parts.map(|(what, ids)| format!("{} {what} ({})", ids.len(), ids_text(ids))).collect();
    format!("shared jobs: {}", parts.join(", "))
}

fn nodes_text(NodeListChange { joined, left, all }: &NodeListChange) -> String {
    let parts = [("joined", joined), ("left", left)].into_iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<String> = parts.map(|(verb, names)| format!("{} {verb}", names.join(", "))).collect();
    let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
    format!("servers: {}; running now: {all}", parts.join(", "))
}

fn ids_text(ids: &[JobId]) -> String {
    let mut parts: Vec<String> = ids.iter().take(IDS_SHOWN_MAX).map(JobId::to_string).collect();
    if ids.len() > IDS_SHOWN_MAX {
        parts.push(format!("{} more", ids.len() - IDS_SHOWN_MAX));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: &str) -> JobId {
        JobId::parse(id).expect("an id")
    }

    #[test]
    fn long_lists_of_jobs_are_counted() {
        let changed: Vec<JobId> = (1..=7).map(|number| job(&format!("j{number}"))).collect();
        let report = SharedJobReport::JobsChanged { changed, removed: vec![job("old")] };
        let expected = "shared jobs: 7 new or changed (j1, j2, j3, j4, j5, 2 more), 1 removed (old)";
        assert_eq!(report.to_string(), expected);
    }

    #[test]
    fn servers_that_come_and_go_are_reported_with_all() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let change = NodeListChange { joined: names(&["c"]), left: names(&["a", "b"]), all: names(&["c", "d"]) };
        let report = SharedJobReport::NodeListChanged(change);
        assert_eq!(report.to_string(), "servers: c joined, a, b left; running now: c, d");
    }

    #[test]
    fn control_characters_of_other_programs_are_replaced() {
        let report = SharedJobReport::InvalidName { name: "a\nb".to_owned(), reason: "wrong\u{1b}".to_owned() };
        assert_eq!(report.to_string(), "shared job `a?b` is ignored: wrong?");
        let event = SharedJobReport::Event { text: "x\ry".to_owned(), outcome: EventOutcome::Applied };
        assert_eq!(event.to_string(), "event x?y: done");
    }
}
