//! Every key that a job file can have, in one table per map: its name, its values, its meaning and its default. The table
//! of a map that is one type (`record`) or a variant of an enum (`variant`) also names the field of each key, or the
//! variant that the key selects. Reader, writer, JSON Schema and reference are made of these tables, so they cannot
//! disagree. A schedule, `batching`, `overlap`, `nodes` and sources of `env` are read and written by functions in `read`
//! and `write`, because their rules involve several keys or only some of their forms are maps.

mod codec;
mod job;
pub(crate) mod record;
mod schedule;
pub(crate) mod variant;
mod work;

pub use codec::METHODS;
pub(crate) use codec::{CPU_LEAST, IO_IDLE, METHOD_MAX};
use cronhold_core::job::Feature;
pub(crate) use job::QUEUE_MAP;
pub use job::{
    BATCHING, CATCH_UP, DEFAULTS, EACH, ENV_SOURCE, HEADER_SOURCE, JOB, LIMITS, OVERLAP, PARAM, QUEUE, RETAIN, RETRY,
    STDIN_FILE, STOP, TRIGGER,
};
pub(crate) use record::write_record;
pub(crate) use schedule::STOP_SCHEDULE_MAP;
pub use schedule::{APSIS_PAIR, APSIS_STOP, APSIS_TYPED, DAILY, DAILY_INTERVAL, EDGE, SCHEDULE, STOP_SCHEDULE, WHEN};
pub use work::{
    ACTION, ACTION_FILTER, AFTER, CONDITION, EMAIL, HTTP, MAX_RUNNING, NOOP, PLUGIN, PROGRAM, PUBLISH, REMOTE, RUN,
    SKIP_DUPLICATE, TASK_FEED, TASK_QUEUE, TASK_WRITE, WEBHOOK, WINDOW,
};
pub(crate) use work::{ACTION_MAP, NOOP_MAP, PROGRAM_MAP, SKIP_DUPLICATE_MAP, WINDOW_MAP};

/// All tables, in reading order.
pub static TABLES: &[&KeyTable] = &[
    &JOB,
    &PARAM,
    &SCHEDULE,
    &DAILY,
    &DAILY_INTERVAL,
    &EDGE,
    &STOP_SCHEDULE,
    &APSIS_TYPED,
    &APSIS_PAIR,
    &APSIS_STOP,
    &PROGRAM,
    &HTTP,
    &HEADER_SOURCE,
    &REMOTE,
    &TASK_QUEUE,
    &TASK_FEED,
    &TASK_WRITE,
    &NOOP,
    &PLUGIN,
    &CONDITION,
    &AFTER,
    &MAX_RUNNING,
    &SKIP_DUPLICATE,
    &WINDOW,
    &ACTION,
    &ACTION_FILTER,
    &RUN,
    &WEBHOOK,
    &EMAIL,
    &PUBLISH,
    &OVERLAP,
    &QUEUE,
    &CATCH_UP,
    &RETRY,
    &STOP,
    &ENV_SOURCE,
    &STDIN_FILE,
    &LIMITS,
    &EACH,
    &TRIGGER,
    &BATCHING,
    &RETAIN,
    &DEFAULTS,
];

/// The keys of one map.
#[derive(Debug)]
pub struct KeyTable {
    /// Name in the schema, such as `schedule`.
    pub name: &'static str,
    /// Its name in messages, such as `a schedule`.
    pub noun: &'static str,
    /// What it describes.
    pub doc: &'static str,
    /// Its keys in the order in which users write them.
    pub keys: &'static [KeySpec],
    /// Groups of keys of which exactly one must be present, with one or more of its keys. Empty if there is no such
    /// rule.
    pub one_of: &'static [&'static [&'static str]],
}

impl KeyTable {
    /// Looks up a key by its name or an alias.
    pub fn key(&self, name: &str) -> Option<&'static KeySpec> {
        self.keys.iter().find(|key| key.name == name || key.aliases.contains(&name))
    }

    /// All accepted names, canonical ones first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let names = self.keys.iter().map(|key| key.name);
        names.chain(self.keys.iter().flat_map(|key| key.aliases.iter().copied()))
    }
}

#[derive(Debug)]
pub struct KeySpec {
    /// Canonical name.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// The values that it accepts.
    pub shape: ValueShape,
    /// What it means, in one sentence.
    pub doc: &'static str,
    /// The default, as shown in the reference. `None` if there is none.
    pub default: Option<&'static str>,
    pub required: bool,
    /// The feature that the key requires; `None` if every version supports the key.
    pub feature: Option<Feature>,
}

impl KeySpec {
    const fn new(name: &'static str, shape: ValueShape, doc: &'static str) -> Self {
        Self { name, aliases: &[], shape, doc, default: None, required: false, feature: None }
    }

    const fn of(mut self, shape: ValueShape) -> Self {
        self.shape = shape;
        self
    }

    const fn default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Marks a key that is rejected unless this version supports the feature.
    const fn needs(mut self, feature: Feature) -> Self {
        self.feature = Some(feature);
        self
    }

    /// The doc text, with a note if this version rejects the key.
    pub fn meaning(&self) -> String {
        match self.unsupported() {
            Some(_) => format!("{} **Not supported by this version.**", self.doc),
            None => self.doc.to_owned(),
        }
    }

    /// The feature that the key requires and this version does not support.
    pub fn unsupported(&self) -> Option<Feature> {
        self.feature.filter(|feature| !feature.is_supported())
    }
}

/// The values that a key accepts.
#[derive(Debug, Clone, Copy)]
pub enum ValueShape {
    /// A text; a number is read as its text.
    Text,
    /// A text, number or boolean, read as its text.
    Value,
    /// Like `Value`, with template expressions.
    Template,
    /// An expression, as between `{{` and `}}` of a template.
    Expression,
    /// `true` or `false`.
    Bool,
    /// Only `true`.
    True,
    Null,
    /// A whole number.
    Whole {
        /// Minimum.
        least: i64,
        /// Maximum.
        most: i64,
    },
    Number {
        /// Minimum.
        least: f64,
    },
    /// A span of time.
    Span,
    /// A size in bytes.
    Size {
        /// Minimum in bytes.
        least: u64,
    },
    /// A time of day.
    Time,
    /// A date, a local date and time, or an instant.
    Moment,
    /// A text that a regular expression describes.
    Pattern {
        regex: &'static str,
        /// The name of such a value in messages.
        noun: &'static str,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    List(&'static ValueShape),
    /// A list with at least one item.
    Some(&'static ValueShape),
    /// A map with the keys of a table.
    Map(&'static KeyTable),
    /// A map with keys that the user chooses.
    Names {
        /// Pattern of the names; empty if any name is allowed.
        regex: &'static str,
        /// The values of the map.
        value: &'static ValueShape,
    },
    /// Any of these.
    Either(&'static [ValueShape]),
}

/// Names of params, args and settings.
pub(crate) const IDENTIFIER: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
/// Channels.
pub(crate) const CHANNEL: ValueShape = ValueShape::Pattern { regex: "^/", noun: "a channel, which begins with `/`" };
#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tables_are_consistent() {
        let tables: BTreeSet<&str> = TABLES.iter().map(|table| table.name).collect();
        assert_eq!(tables.len(), TABLES.len());
        let mut features = Vec::new();
        for table in TABLES {
            let mut seen = BTreeSet::new();
            assert!(table.doc.ends_with('.'), "{}", table.name);
            for name in table.names() {
                assert!(seen.insert(name), "{}: duplicate {name}", table.name);
            }
            for key in table.keys {
                assert!(key.doc.ends_with('.'), "{}.{}", table.name, key.name);
                features.extend(key.feature);
            }
            for name in table.one_of.iter().flat_map(|group| group.iter()) {
                assert!(table.key(name).is_some(), "{}: one_of names {name}", table.name);
            }
        }
        features.sort();
        assert_eq!(features, Feature::ALL, "each feature is needed by one key");
    }
}
