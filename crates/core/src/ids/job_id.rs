//! The id of a job: a path such as `reports/prices`, because a job file's path is its id.

use std::fmt;
use std::sync::Arc;

use super::run_id::RunId;
use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;

/// Longest id in bytes.
pub const JOB_ID_MAX: usize = 200;
/// First part of the ids of jobs that are stored for an ad hoc run.
pub const AD_HOC_FOLDER: &str = "adhoc";

/// The id of a job. Cheap to clone.
///
/// Invariant: segments are not empty, not `.` or `..`, have no whitespace at their ends, no control characters and no
/// `#`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(Arc<str>);

impl JobId {
    /// Parses an id.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let whole = 0..text.len();
        if text.is_empty() {
            return Err(TextError::new(whole, "a job's id cannot be empty").hint("write a name such as reports/prices"));
        }
        if text.len() > JOB_ID_MAX {
            let message =
                format!("a job's id can have at most {JOB_ID_MAX} bytes, `{}` has {}", shortened(text), text.len());
            return Err(TextError::new(whole, message));
        }
        if text == "all" {
            return Err(TextError::new(whole, "`all` cannot be a job's id: `pause all` means every job")
                .hint("choose another name, or put it in a folder such as jobs/all"));
        }
        if let Some((at, sign)) = text.char_indices().find(|(_, sign)| sign.is_control() || *sign == '#') {
            let at = at..at + sign.len_utf8();
            return Err(match sign {
                '#' => TextError::new(at, "`#` cannot be in a job's id").hint("it separates a run's number: backup#42"),
                _ => TextError::new(at, "control characters cannot be in a job's id"),
            });
        }
        let mut at = 0;
        for segment in text.split('/') {
            check_segment(segment).map_err(|error| error.shifted(at))?;
            at += segment.len() + 1;
        }
        Ok(Self(text.into()))
    }

    /// The id of the job that is stored for an ad hoc run. Ids of later runs are greater.
    pub fn of_ad_hoc_run(run: RunId) -> Self {
        Self(format!("{AD_HOC_FOLDER}/{run}").into())
    }

    /// Whether the id is that of the job of an ad hoc run.
    pub fn is_ad_hoc(&self) -> bool {
        let run = self.0.strip_prefix(AD_HOC_FOLDER).and_then(|rest| rest.strip_prefix('/'));
        run.is_some_and(|run| RunId::parse(run).is_ok_and(|id| id.to_string() == run))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id without its last segment; `None` if it has only one.
    pub fn folder(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(folder, _)| folder)
    }
}

fn check_segment(segment: &str) -> Result<(), TextError> {
    let at = 0..segment.len();
    match segment {
        "" => Err(TextError::new(at, "a job's id has an empty part")
            .hint("parts are separated by one `/`, with none at the beginning or end")),
        "." | ".." => Err(TextError::new(at, format!("`{segment}` cannot be a part of a job's id"))),
        _ if segment.trim() != segment => {
            let trimmed = segment.trim();
            let hint = if trimmed.is_empty() { "write a name".to_owned() } else { format!("write `{trimmed}`") };
            Err(TextError::new(at, "a part of a job's id cannot begin or end with a blank").hint(hint))
        }
        _ => Ok(()),
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for JobId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

cronhold_schedule::stored_as_text!(JobId);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn valid_ids_parse() {
        for text in ["a", "reports/prices", "My Job.v2", "a/b/c", "all/x", "jobs/all", "..a", "grün", "...", "ALL"] {
            assert_eq!(JobId::parse(text).map(|id| id.to_string()).as_deref(), Ok(text));
        }
        assert_eq!(JobId::parse("a/b/c").expect("valid").folder(), Some("a/b"));
        assert_eq!(JobId::parse("c").expect("valid").folder(), None);
    }

    #[test]
    fn invalid_ids_are_rejected_with_a_message() {
        for (text, at, message) in [
            ("", 0..0, "cannot be empty"),
            ("all", 0..3, "`pause all` means every job"),
            ("a//b", 2..2, "an empty part"),
            ("/a", 0..0, "an empty part"),
            ("a/", 2..2, "an empty part"),
            ("a/../b", 2..4, "`..` cannot be a part"),
            (".", 0..1, "`.` cannot be a part"),
            ("a/ b", 2..4, "begin or end with a blank (write `b`)"),
            (" ", 0..1, "begin or end with a blank (write a name)"),
            ("a#1", 1..2, "`#` cannot be in a job's id"),
            ("a\nb", 1..2, "control characters"),
            ("a/\u{7f}", 2..3, "control characters"),
        ] {
            let error = JobId::parse(text).expect_err(text);
            assert!(error.to_string().contains(message), "{text}: {error}");
            assert_eq!(error.at, at, "{text}");
        }
        assert!(JobId::parse(&"x".repeat(JOB_ID_MAX)).is_ok());
        assert!(JobId::parse(&"x".repeat(JOB_ID_MAX + 1)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_an_id_or_has_an_error_range_inside_it(text in "[a-c ./#\\PC]{0,30}") {
            match JobId::parse(&text) {
                Ok(id) => prop_assert_eq!(id.as_str(), text),
                Err(error) => prop_assert!(text.get(error.at).is_some()),
            }
        }
    }
}
