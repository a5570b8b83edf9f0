//! Triggers: requests to run a job. The pending ones of a job are one record, so that a batching policy decides about all
//! of them in one commit, which creates the run and removes the triggers that it stands for. That a trigger was received
//! is known for 24 hours by a mark; see [`LockName::of_trigger`](super::LockName::of_trigger).

use std::fmt;
use std::sync::Arc;

use cronhold_schedule::text::shortened;
use cronhold_schedule::{Instant, TextError};
use serde::{Deserialize, Serialize};

use super::Actor;
use crate::args::Args;
use crate::ids::{JobId, RunId, RunNumber};
use crate::task::{Channel, JsonText};

/// The id of a trigger: within 24 hours, a job receives each id once. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TriggerId(Arc<str>);

/// A trigger that no run stands for yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingTrigger {
    pub id: TriggerId,
    /// When it was received.
    pub at: Instant,
    /// Who or what sent it.
    pub by: Actor,
    /// The args of its run.
    #[serde(default, skip_serializing_if = "Args::is_empty")]
    pub args: Args,
    /// The message that it stands for; `None` if it did not come from a channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<TriggerMessage>>,
}

/// A message that a trigger stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerMessage {
    /// The channel on which it was published, which may be below the one that the job names.
    pub channel: Channel,
    pub message: JsonText,
}

/// A trigger that a run stands for. Its args are those of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTrigger {
    pub id: TriggerId,
    /// When it was received.
    pub at: Instant,
    /// Who or what sent it.
    pub by: Actor,
    /// The message that it stands for; `None` if it did not come from a channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<TriggerMessage>>,
}

/// The pending triggers of a job, and what was decided about triggers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerSet {
    pub job: JobId,
    /// Pending triggers, the oldest first.
    pub pending: Vec<PendingTrigger>,
    pub counts: TriggerCounts,
    /// The latest decisions, the oldest first; at most [`Self::DECISIONS_MAX`].
    pub decisions: Vec<TriggerDecision>,
    /// When the set has to be checked next; `None` if no trigger is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Instant>,
}

/// How many triggers a job has received and what became of them. Those that are neither consumed, nor expired, nor
/// removed are pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TriggerCounts {
    /// Triggers that were received. Repeated ids do not count.
    pub received: u64,
    /// Triggers that runs stand for.
    pub consumed: u64,
    /// Triggers that were dropped because they had become too old.
    pub expired: u64,
    /// Triggers that an operator removed.
    pub removed: u64,
}

/// A decision about the triggers of a job. Decisions that only repeat the one before are counted, not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerDecision {
    /// When it was made first.
    pub since: Instant,
    /// When it was made last.
    pub at: Instant,
    /// How often it was made in a row.
    pub times: u32,
    pub outcome: TriggerOutcome,
    /// How many triggers were pending after it was made last.
    pub pending: u32,
}

/// What was decided about the triggers of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerOutcome {
    /// A run was created.
    Run {
        run: RunId,
        number: RunNumber,
        /// How many triggers it stands for.
        triggers: u32,
    },
    /// All pending triggers wait until runs have ended.
    Busy {
        /// Runs that are active or wait to start.
        active: u32,
        /// The most runs at the same time.
        limit: u32,
    },
    /// The job, or all jobs, are paused, and the pending triggers do not pass the pause.
    Paused,
    /// The node that decided may not run the job; another one may.
    NoNode,
    /// Triggers were dropped because they had become too old.
    Expired { triggers: u32 },
    /// An operator removed triggers.
    Removed { triggers: u32, by: Actor },
}

impl TriggerId {
    /// The longest id in bytes.
    pub const MAX: usize = 200;

    /// Parses an id of 1 to [`Self::MAX`] bytes without control characters.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if text.is_empty() || text.len() > Self::MAX || text.contains(char::is_control) {
            let message = format!("`{}` cannot be the id of a trigger", shortened(text).escape_debug());
            let hint = format!("an id has 1 to {} bytes and no control characters", Self::MAX);
            return Err(TextError::new(0..text.len(), message).hint(hint));
        }
        Ok(Self(text.into()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TriggerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TriggerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

cronhold_schedule::stored_as_text!(TriggerId);

impl PendingTrigger {
    /// The size of its texts in bytes.
    fn bytes(&self) -> usize {
        let args = self.args.iter().map(|(name, value)| name.len() + value.len());
        self.id.as_str().len() + args.sum::<usize>() + self.message.as_ref().map_or(0, |message| message.bytes())
    }
}

impl From<PendingTrigger> for RunTrigger {
    fn from(PendingTrigger { id, at, by, message, .. }: PendingTrigger) -> Self {
        Self { id, at, by, message }
    }
}

impl TriggerMessage {
    /// The largest message that a trigger can stand for, in bytes of JSON.
    pub const BYTES_MAX: usize = 64 * 1024;

    /// The size of its texts in bytes.
    pub fn bytes(&self) -> usize {
        self.channel.as_str().len() + self.message.as_str().len()
    }
}

impl TriggerSet {
    /// The most triggers of one job that may be pending. This bounds the size of the record, and of a run that stands
    /// for all of them.
    pub const PENDING_MAX: usize = 1_000;
    /// The largest size of the ids, args and messages of the pending triggers of one job, in bytes.
    pub const BYTES_MAX: usize = 256 * 1024;
    /// Decisions that are kept.
    pub const DECISIONS_MAX: usize = 10;

    /// The set of a job that has never received a trigger.
    pub fn new(job: JobId) -> Self {
        let (pending, decisions) = (Vec::new(), Vec::new());
        Self { job, pending, counts: TriggerCounts::default(), decisions, due: None }
    }

    /// Whether there is room for another trigger.
    pub fn has_room_for(&self, trigger: &PendingTrigger) -> bool {
        let bytes = self.pending.iter().map(PendingTrigger::bytes).sum::<usize>();
        self.pending.len() < Self::PENDING_MAX && bytes + trigger.bytes() <= Self::BYTES_MAX
    }

    /// Adds a trigger that was received. The clocks of nodes may differ, so it need not be the newest.
    pub fn add(&mut self, trigger: PendingTrigger) {
        self.counts.received += 1;
        let place = self.pending.partition_point(|other| other.at <= trigger.at);
        self.pending.insert(place, trigger);
    }

    /// Takes out the triggers at these positions, which are in ascending order.
    pub fn take(&mut self, positions: &[usize]) -> Vec<PendingTrigger> {
        let mut taken = Vec::with_capacity(positions.len());
        for position in positions.iter().rev() {
            taken.push(self.pending.remove(*position));
        }
        taken.reverse();
        taken
    }

    /// Whether a trigger is pending.
    pub fn is_pending(&self, id: &TriggerId) -> bool {
        self.pending.iter().any(|trigger| trigger.id == *id)
    }

    /// The latest decision; `None` if there is none.
    pub fn last_decision(&self) -> Option<&TriggerDecision> {
        self.decisions.last()
    }

    /// Whether the latest decision was of the same kind as this one, so that only its numbers may have changed.
    pub fn repeats(&self, outcome: &TriggerOutcome) -> bool {
        self.last_decision().is_some_and(|last| last.outcome.is_repeated_by(outcome))
    }

    /// Records a decision. One that repeats the latest one is counted there.
    pub fn record_decision(&mut self, outcome: TriggerOutcome, at: Instant) {
        let pending = u32::try_from(self.pending.len()).unwrap_or(u32::MAX);
        if let Some(last) = self.decisions.last_mut().filter(|last| last.outcome.is_repeated_by(&outcome)) {
            *last = TriggerDecision { at, times: last.times.saturating_add(1), outcome, pending, since: last.since };
            return;
        }
        self.decisions.push(TriggerDecision { since: at, at, times: 1, outcome, pending });
        let surplus = self.decisions.len().saturating_sub(Self::DECISIONS_MAX);
        self.decisions.drain(..surplus);
    }
}

impl TriggerOutcome {
    /// Whether another decision only repeats this one: triggers wait for the same reason.
    fn is_repeated_by(&self, next: &Self) -> bool {
        matches!(
            (self, next),
            (Self::Busy { .. }, Self::Busy { .. }) | (Self::Paused, Self::Paused) | (Self::NoNode, Self::NoNode)
        )
    }
}

impl fmt::Display for TriggerOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count: u32| if count == 1 { "1 trigger".to_owned() } else { format!("{count} triggers") };
        match self {
            Self::Run { number, triggers, .. } => write!(f, "created run #{} for {}", number.0, counted(*triggers)),
            Self::Busy { active, limit } => {
                let noun = if *active == 1 { "run has" } else { "runs have" };
                write!(f, "wait: {active} {noun} not ended, at most {limit} at the same time")
            }
            Self::Paused => write!(f, "wait: paused"),
            Self::NoNode => write!(f, "wait: the node may not run the job"),
            Self::Expired { triggers } => write!(f, "dropped {} that had become too old", counted(*triggers)),
            Self::Removed { triggers, by } => write!(f, "removed {} by {by}", counted(*triggers)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> TriggerSet {
        TriggerSet::new(JobId::parse("j").expect("an id"))
    }

    fn trigger(id: &str, at: i64, value: &str) -> PendingTrigger {
        let args =
            if value.is_empty() { Args::new() } else { [("x".to_owned(), value.to_owned())].into_iter().collect() };
        let id = TriggerId::parse(id).expect("an id");
        PendingTrigger { id, at: Instant::from_secs(at), by: Actor::Action, args, message: None }
    }

    #[test]
    fn ids_are_bounded_and_printable() {
        for (text, is_valid) in
            [("a", true), ("order 4711/größe", true), ("", false), ("a\nb", false), (&"x".repeat(201), false)]
        {
            assert_eq!(TriggerId::parse(text).is_ok(), is_valid, "{text:?}");
        }
    }

    #[test]
    fn triggers_are_in_the_order_of_their_times() {
        let mut set = set();
        for (id, at) in [("a", 5), ("b", 9), ("c", 5), ("d", 1)] {
            set.add(trigger(id, at, ""));
        }
        let ids = |triggers: &[PendingTrigger]| triggers.iter().map(|one| one.id.to_string()).collect::<String>();
        assert_eq!((ids(&set.pending), set.counts.received), ("dacb".to_owned(), 4));
        assert_eq!(ids(&set.take(&[0, 2])), "dc");
        assert_eq!(ids(&set.pending), "ab");
    }

    #[test]
    fn number_and_size_of_pending_triggers_are_bounded() {
        let mut many = set();
        (0..TriggerSet::PENDING_MAX).for_each(|number| many.add(trigger(&number.to_string(), 0, "")));
        assert!(!many.has_room_for(&trigger("a", 0, "")));
        let mut large = set();
        large.add(trigger("a", 0, &"x".repeat(TriggerSet::BYTES_MAX - 10)));
        assert!(large.has_room_for(&trigger("b", 0, "12345")) && !large.has_room_for(&trigger("b", 0, "123456789")));
    }

    #[test]
    fn repeated_decisions_are_counted_and_the_latest_are_kept() {
        let mut set = set();
        let busy = |active| TriggerOutcome::Busy { active, limit: 1 };
        set.record_decision(busy(1), Instant::from_secs(1));
        set.record_decision(busy(2), Instant::from_secs(2));
        let last = set.last_decision().expect("one").clone();
        assert_eq!((set.decisions.len(), last.times, last.since), (1, 2, Instant::from_secs(1)));
        assert_eq!((last.at, last.outcome.to_string()), (Instant::from_secs(2), busy(2).to_string()));
        for second in 3..20 {
            set.record_decision(TriggerOutcome::Expired { triggers: 1 }, Instant::from_secs(second));
        }
        assert_eq!((set.decisions.len(), set.decisions[0].at), (TriggerSet::DECISIONS_MAX, Instant::from_secs(10)));
    }
}
