//! References to a run: its id, `job#number`, or the job alone for the run that is running or started last.

use std::fmt;

use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;
use serde::{Deserialize, Serialize};

use super::job_id::JobId;
use super::run_id::{RunId, looks_like_id};

/// The number of a run among the runs of its job; the first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunNumber(pub u64);

impl fmt::Display for RunNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A reference to a run, as a user writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunRef {
    /// The run with this id.
    Id(RunId),
    /// The run with this number within its job.
    Numbered(JobId, RunNumber),
    /// The run of a job that is running, or started last.
    Latest(JobId),
}

impl RunRef {
    /// Parses a reference. A text in the form of a run's id is an id, even if a job has that name.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if looks_like_id(text) {
            return RunId::parse(text).map(Self::Id);
        }
        let Some((job, number)) = text.rsplit_once('#') else {
            return JobId::parse(text).map(Self::Latest);
        };
        let at = job.len() + 1..text.len();
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        let parsed = number.parse().ok().filter(|number| digits && *number > 0).ok_or_else(|| {
            TextError::new(at, format!("`{}` is not the number of a run", shortened(number)))
                .hint("write a run as job#number, such as backup#42")
        })?;
        Ok(Self::Numbered(JobId::parse(job)?, RunNumber(parsed)))
    }
}

impl fmt::Display for RunRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "{id}"),
            Self::Numbered(job, number) => write!(f, "{job}#{number}"),
            Self::Latest(job) => write!(f, "{job}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_parse_or_are_rejected_with_a_message() {
        for (text, form) in [
            ("019d376a41fb7fffbfffffffffffffff", "id"),
            ("backup#42", "numbered"),
            ("My Reports/a.b#1", "numbered"),
            ("backup", "latest"),
            ("019d376a", "latest"),
        ] {
            let name = RunRef::parse(text).expect(text);
            let found = match &name {
                RunRef::Id(_) => "id",
                RunRef::Numbered(..) => "numbered",
                RunRef::Latest(_) => "latest",
            };
            assert_eq!((name.to_string().as_str(), found), (text, form));
        }
        for (text, at, message) in [
            ("backup#", 7..7, "`` is not the number"),
            ("backup#0", 7..8, "`0` is not the number"),
            ("backup#+1", 7..9, "`+1` is not the number"),
            ("backup#99999999999999999999", 7..27, "is not the number"),
            ("a#b#1", 1..2, "`#` cannot be in a job's id"),
            ("#1", 0..0, "cannot be empty"),
        ] {
            let error = RunRef::parse(text).expect_err(text);
            assert!(error.message.contains(message), "{text}: {error}");
            assert_eq!(error.at, at, "{text}");
        }
    }
}
