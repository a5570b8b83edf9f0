//! Who made something happen. Stands in every transition of a run.

use std::fmt;

use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;

/// Who made something happen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Actor {
    /// A schedule whose time came.
    Schedule,
    /// What was missed is made up for.
    CatchUp,
    /// A failed run is tried again.
    Retry,
    /// A run that waited, when nothing was in its way any longer.
    Queue,
    /// A limit of the run: its timeout or its stop schedule.
    Limit,
    /// The program of the run.
    Program,
    /// A node that came back and looked at what it had left.
    Recovery,
    /// The watchdog, which repairs what nobody else did.
    Watchdog,
    /// Housekeeping: retention.
    Retention,
    /// The directory of job files.
    JobFiles,
    /// A person or program that asked for it, by name.
    Operator(String),
}

const FIXED: [(&str, Actor); 10] = [
    ("schedule", Actor::Schedule),
    ("catch-up", Actor::CatchUp),
    ("retry", Actor::Retry),
    ("queue", Actor::Queue),
    ("limit", Actor::Limit),
    ("program", Actor::Program),
    ("recovery", Actor::Recovery),
    ("watchdog", Actor::Watchdog),
    ("retention", Actor::Retention),
    ("job files", Actor::JobFiles),
];

/// What stands before the name of someone who asked.
const OPERATOR: &str = "operator ";

impl Actor {
    /// Whether a person asked for it by name. Such a run starts even while its job is paused.
    pub const fn is_operator(&self) -> bool {
        matches!(self, Self::Operator(_))
    }

    /// Reads the text of an actor.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if let Some(name) = text.strip_prefix(OPERATOR) {
            return Ok(Self::Operator(name.to_owned()));
        }
        let fixed = FIXED.iter().find(|(name, _)| *name == text).map(|(_, actor)| actor.clone());
        fixed.ok_or_else(|| TextError::new(0..text.len(), format!("`{}` is nobody", shortened(text))))
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
    fn reads_and_prints() {
        for (text, actor) in FIXED {
            assert_eq!((actor.to_string().as_str(), Actor::parse(text)), (text, Ok(actor)));
        }
        let anna = Actor::Operator("anna".to_owned());
        assert_eq!(Actor::parse(&anna.to_string()), Ok(anna));
        assert!(Actor::parse("nobody").is_err());
    }
}
