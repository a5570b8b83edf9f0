//! Who caused a change. Every transition of a run and every pause names its actor.

use std::fmt;

use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;

/// Who caused a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Actor {
    /// A schedule whose occurrence was due.
    Schedule,
    /// Catch-up of missed occurrences.
    CatchUp,
    /// The retry policy of a failed run.
    Retry,
    /// The queue, when nothing blocks a waiting run any longer.
    Queue,
    /// A limit of time: the timeout of a run, its stop schedule, or the end of a pause.
    Limit,
    /// An action of another run.
    Action,
    /// A message on a channel.
    Channel,
    /// The program of the run.
    Program,
    /// A node that restarted and recovered its unfinished runs.
    Recovery,
    Watchdog,
    /// Retention, which deletes old records.
    Retention,
    /// The directory of job files.
    JobFiles,
    /// An event that a foreign system sent to all nodes. Foreign nodes have received the same event.
    ForeignEvent,
    /// A job definition that a foreign system shares with this store.
    ForeignDefinition,
    /// The user or client that sent the request. The caller chooses this name, so no decision may depend on it.
    Operator(String),
}

const FIXED: [(&str, Actor); 14] = [
    ("schedule", Actor::Schedule),
    ("catch-up", Actor::CatchUp),
    ("retry", Actor::Retry),
    ("queue", Actor::Queue),
    ("limit", Actor::Limit),
    ("action", Actor::Action),
    ("channel", Actor::Channel),
    ("program", Actor::Program),
    ("recovery", Actor::Recovery),
    ("watchdog", Actor::Watchdog),
    ("retention", Actor::Retention),
    ("job files", Actor::JobFiles),
    ("foreign event", Actor::ForeignEvent),
    ("foreign definition", Actor::ForeignDefinition),
];

/// Prefix of an operator's name in the stored text. It keeps every such name apart from the fixed actors.
const OPERATOR: &str = "operator ";

impl Actor {
    /// Whether the change was requested explicitly, by an operator or by an event. A run that was requested starts even
    /// while its job is paused.
    pub const fn is_explicit(&self) -> bool {
        matches!(self, Self::Operator(_) | Self::ForeignEvent)
    }

    /// Parses the text that `Display` writes.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if let Some(name) = text.strip_prefix(OPERATOR) {
            return Ok(Self::Operator(name.to_owned()));
        }
        let fixed = FIXED.iter().find(|(name, _)| *name == text).map(|(_, actor)| actor.clone());
        fixed.ok_or_else(|| TextError::new(0..text.len(), format!("`{}` is not an actor", shortened(text))))
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator(name) => write!(f, "{OPERATOR}{name}"),
            fixed => {
                let name = FIXED.iter().find(|(_, actor)| actor == fixed).map(|(name, _)| *name);
                f.write_str(name.expect("every other actor is in the table"))
            }
        }
    }
}

cronhold_schedule::stored_as_text!(Actor);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_every_actor_parses_back() {
        for (text, actor) in FIXED {
            assert_eq!((actor.to_string().as_str(), Actor::parse(text)), (text, Ok(actor)));
        }
        let anna = Actor::Operator("anna".to_owned());
        assert_eq!(Actor::parse(&anna.to_string()), Ok(anna));
        assert!(Actor::parse("nobody").is_err());
    }

    #[test]
    fn operator_named_like_a_fixed_actor_stays_an_operator() {
        for (name, fixed) in FIXED {
            let operator = Actor::Operator(name.to_owned());
            assert_ne!(operator.to_string(), fixed.to_string());
            assert_eq!(Actor::parse(&operator.to_string()), Ok(operator));
        }
    }
}
