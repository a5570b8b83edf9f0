//! Runs: their states, the state table, and the reasons for which they end.

pub mod diagram;
mod reason;
mod table;

use std::fmt;

use cronhold_schedule::TextError;
use cronhold_schedule::text::{did_you_mean, shortened};
use serde::{Deserialize, Serialize};

pub use reason::Reason;
pub use table::{Cause, Operation, TransitionEffect, TransitionRejection, next};

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Waits for its time.
    Scheduled,
    /// Waits for its conditions.
    Waiting,
    /// Its program is being started.
    Starting,
    /// Its program is running.
    Running,
    /// Its program is being stopped.
    Stopping,
    /// Its program succeeded.
    Success,
    /// Its program failed.
    Failure,
    /// Cronhold, the configuration or the machine failed.
    Error,
    /// It was not started, for a recorded reason.
    Skipped,
}

impl State {
    /// All states, in the order in which a run can enter them.
    pub const ALL: [Self; 9] = [
        Self::Scheduled,
        Self::Waiting,
        Self::Starting,
        Self::Running,
        Self::Stopping,
        Self::Success,
        Self::Failure,
        Self::Error,
        Self::Skipped,
    ];

    /// Names of all states, in the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 9] = {
        let mut names = [""; 9];
        let mut index = 0;
        while index < names.len() {
            names[index] = Self::ALL[index].name();
            index += 1;
        }
        names
    };

    /// The name that users read and write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }

    /// Whether the run has ended. After that only an operator can change its state.
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Success | Self::Failure | Self::Error | Self::Skipped)
    }

    /// Whether the run may have a program, and so has an owner.
    pub const fn has_program(self) -> bool {
        matches!(self, Self::Starting | Self::Running | Self::Stopping)
    }

    /// Parses the name of a state.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        Self::ALL.into_iter().find(|state| state.name() == text).ok_or_else(|| {
            let error = TextError::new(0..text.len(), format!("`{}` is not a state of a run", shortened(text)));
            match did_you_mean(text, Self::NAMES) {
                Some(meant) => error.hint(format!("did you mean `{meant}`?")),
                None => error.hint(format!("states are {}", Self::NAMES.join(", "))),
            }
        })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_states_parse_back() {
        for state in State::ALL {
            assert_eq!(State::parse(&state.to_string()), Ok(state));
            assert_eq!(serde_json::to_string(&state).expect("a text"), format!("\"{state}\""));
        }
        assert_eq!(format!("[{:>9}]", State::Error), "[    error]");
        assert!(State::parse("sucess").expect_err("misspelt").to_string().contains("did you mean `success`?"));
        assert!(State::parse("done").expect_err("unknown").to_string().contains("states are scheduled, waiting"));
    }
}
