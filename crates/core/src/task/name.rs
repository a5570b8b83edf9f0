//! The ids and names around a task. Each is a type of its own, so that a class is never taken for a queue.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;
use serde::{Deserialize, Serialize};

use super::limits::NAME_BYTES_MAX;
use crate::ids::JobId;

/// The id of a task. Ids count up from 1 and are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(u64);

impl TaskId {
    /// The first id.
    pub const FIRST: Self = Self(1);

    /// The largest id: one that also fits into a signed integer.
    pub const MAX: Self = Self(i64::MAX as u64);

    /// The id with this number; `None` for 0 and for numbers above [`TaskId::MAX`].
    pub fn new(number: u64) -> Option<Self> {
        (1..=Self::MAX.0).contains(&number).then_some(Self(number))
    }

    /// Parses a decimal number. The whole text has to be one: `12abc` is not an id.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let is_number = !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| text.parse().ok()).flatten();
        number.and_then(Self::new).ok_or_else(|| {
            TextError::new(0..text.len(), format!("`{}` is not the id of a task", shortened(text)))
                .hint("write a number from 1")
        })
    }

    /// The number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

cronhold_schedule::stored_as_text!(TaskId);

/// The id of one step of a task: 128 random bits. The process that knows it holds the task while its lease lasts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(u128);

impl StepId {
    /// An id from random bits.
    pub const fn from_random(bits: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bits))
    }

    /// Parses 32 hexadecimal digits in lower case.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let bits = is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        bits.map(Self).ok_or_else(|| {
            TextError::new(0..text.len(), format!("`{}` is not the id of a step", shortened(text)))
                .hint("write 32 hexadecimal digits")
        })
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

cronhold_schedule::stored_as_text!(StepId);

/// A task as a person or a script names it: by its id or by an alias. An alias begins with a letter, so no text is both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKey {
    Id(TaskId),
    Alias(TaskAlias),
}

impl TaskKey {
    /// Parses an id or an alias.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        match text.starts_with(|first: char| first.is_ascii_digit()) {
            true => TaskId::parse(text).map(Self::Id),
            false => TaskAlias::parse(text).map(Self::Alias),
        }
    }
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => fmt::Display::fmt(id, f),
            Self::Alias(alias) => fmt::Display::fmt(alias, f),
        }
    }
}

/// Declares a name: a text with rules. Cheap to clone.
macro_rules! task_name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Parses a name, and reports the first rule that it breaks.
            pub fn parse(text: &str) -> Result<Self, TextError> {
                check_text(text, $what)?;
                $check(text)?;
                Ok(Self(text.into()))
            }

            /// A text that comes before every name, from which ordered names can be listed.
            pub fn first() -> Self {
                Self("".into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        cronhold_schedule::stored_as_text!($name);
    };
}

task_name! {
    /// A queue: worker processes serve one, and every task is on one.
    QueueName, "the name of a queue", any_text
}

task_name! {
    /// The class of a task: which worker performs it.
    ClassName, "the name of a class", any_text
}

task_name! {
    /// The name of a child, unique among the children of its parent.
    ChildName, "the name of a child", any_text
}

task_name! {
    /// A field of the state of a task.
    StateField, "a field of the state", any_text
}

task_name! {
    /// A name of a task that is unique in the store.
    TaskAlias, "an alias", begins_with_letter
}

task_name! {
    /// The name of a port, or `*`: the template of ports that are created when they are first used.
    PortName, "the name of a port", port_letters
}

impl PortName {
    /// The template of ports on demand.
    pub fn template() -> Self {
        Self(TEMPLATE.into())
    }

    /// Whether this is the template, which is never listed, read or written itself.
    pub fn is_template(&self) -> bool {
        &*self.0 == TEMPLATE
    }
}

impl TaskAlias {
    /// What the alias of the task of a job with `triggers` begins with.
    const TRIGGER: &str = "cronhold/trigger/";
    /// The longest id of a job with `triggers` in bytes.
    pub const TRIGGER_JOB_MAX: usize = NAME_BYTES_MAX - Self::TRIGGER.len();

    /// The alias of the task of a job with `triggers`; `None` if the id of the job is too long.
    pub fn of_trigger(job: &JobId) -> Option<Self> {
        Self::parse(&format!("{}{job}", Self::TRIGGER)).ok()
    }

    /// The job whose task has this alias; `None` if it is any other alias.
    pub fn trigger_job(&self) -> Option<JobId> {
        JobId::parse(self.0.strip_prefix(Self::TRIGGER)?).ok()
    }
}

const TEMPLATE: &str = "*";

/// What every name has to be. The whole text is checked, also after a line break.
fn check_text(text: &str, what: &str) -> Result<(), TextError> {
    let whole = 0..text.len();
    if text.is_empty() {
        return Err(TextError::new(whole, format!("{what} cannot be empty")));
    }
    if text.len() > NAME_BYTES_MAX {
        let message =
            format!("{what} can have at most {NAME_BYTES_MAX} bytes, `{}` has {}", shortened(text), text.len());
        return Err(TextError::new(whole, message));
    }
    match text.char_indices().find(|(_, sign)| sign.is_control()) {
        Some((at, sign)) => {
            Err(TextError::new(at..at + sign.len_utf8(), format!("control characters cannot be in {what}")))
        }
        None => Ok(()),
    }
}

fn any_text(_: &str) -> Result<(), TextError> {
    Ok(())
}

fn begins_with_letter(text: &str) -> Result<(), TextError> {
    match text.starts_with(char::is_alphabetic) {
        true => Ok(()),
        false => Err(TextError::new(0..1, format!("an alias begins with a letter, `{}` does not", shortened(text)))
            .hint("a number is the id of a task")),
    }
}

fn port_letters(text: &str) -> Result<(), TextError> {
    let is_foreign = |sign: &char| !(sign.is_ascii_alphanumeric() || *sign == '_');
    match text.char_indices().find(|(_, sign)| is_foreign(sign)) {
        Some((at, sign)) if text != TEMPLATE => {
            Err(TextError::new(at..at + sign.len_utf8(), format!("`{sign}` cannot be in the name of a port"))
                .hint("use letters from a to z, digits and _"))
        }
        _ => Ok(()),
    }
}
