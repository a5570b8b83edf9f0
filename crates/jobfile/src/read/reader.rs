//! The reader of one file: its state, and how a node is read as a text, a number, a word or a list. A node of another type
//! is a mistake that names what was found and what is expected.
//!
//! Functions return `None` after a mistake and the caller continues with the next key, so that one reading finds all
//! mistakes. Invariant: a function that returns `None` has reported why.

use std::collections::BTreeSet;
use std::ops::Range;

use cronhold_core::job::TemplateScope;
use cronhold_schedule::text::{did_you_mean, shortened};
use cronhold_schedule::{TextError, ZoneRegistry};

use crate::keys::KeySpec;
use crate::mistake::Mistake;
use crate::yaml::{self, ScalarKind, YamlEntry, YamlNode, YamlScalar, YamlValue};

/// Reads one file.
pub(crate) struct JobReader<'t> {
    file: &'t str,
    text: &'t str,
    pub(super) zones: &'t ZoneRegistry,
    /// Names of the job's params, which templates may use.
    pub(super) params: BTreeSet<String>,
    /// The scope that is being read, which decides which other names templates may use.
    pub(super) scope: TemplateScope,
    /// Whether an unsupported key is a mistake.
    refuses_unsupported: bool,
    mistakes: Vec<Mistake>,
}

/// A value and the name that messages use for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedNode<'n> {
    /// Its key, or the key of its list.
    pub(crate) name: &'n str,
    pub(crate) node: &'n YamlNode,
}

impl<'n> NamedNode<'n> {
    /// One item of this list.
    pub(crate) fn item(self, node: &'n YamlNode) -> Self {
        Self { name: self.name, node }
    }

    /// The value of one entry.
    pub(crate) fn entry(entry: &'n YamlEntry) -> Self {
        Self { name: &entry.key, node: &entry.value }
    }
}

impl<'t> JobReader<'t> {
    pub(crate) fn new(file: &'t str, text: &'t str, zones: &'t ZoneRegistry, mistakes: Vec<Mistake>) -> Self {
        Self {
            file,
            text,
            zones,
            params: BTreeSet::new(),
            scope: TemplateScope::Run,
            refuses_unsupported: true,
            mistakes,
        }
    }

    /// A reader that accepts unsupported keys.
    pub(crate) fn accepting_unsupported(self) -> Self {
        Self { refuses_unsupported: false, ..self }
    }

    /// Whether the job is new, so that what this version cannot carry out is a mistake.
    pub(crate) fn is_strict(&self) -> bool {
        self.refuses_unsupported
    }

    /// All mistakes in the order of the file.
    pub(crate) fn into_mistakes(mut self) -> Vec<Mistake> {
        self.mistakes.sort_by_key(|mistake| (mistake.at.start, mistake.at.end));
        self.mistakes
    }

    /// A mistake at a place of this file.
    pub(crate) fn mistake(&self, at: &Range<usize>, message: impl Into<String>) -> Mistake {
        Mistake::new(self.file, yaml::first_line(self.text, at), message)
    }

    /// Whether the limit of mistakes is reached. Functions whose mistakes are expensive check it first.
    pub(crate) fn is_full(&self) -> bool {
        self.mistakes.len() >= yaml::MISTAKES_MAX
    }

    /// Rejects a key that this version does not support.
    pub(crate) fn report_unsupported(&mut self, key: &KeySpec, entry: &YamlEntry) {
        if let (true, Some(feature)) = (self.refuses_unsupported, key.unsupported()) {
            self.report(Mistake::unsupported(self.file, entry.key_span.clone(), feature));
        }
    }

    pub(crate) fn report(&mut self, mistake: Mistake) {
        if !self.is_full() && !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }

    /// Reports that the value has the wrong type.
    pub(crate) fn wrong<T>(&mut self, item: NamedNode<'_>, expected: &str, example: &str) -> Option<T> {
        let NamedNode { name, node } = item;
        let message = match node.value {
            YamlValue::Broken => return None,
            YamlValue::Null => format!("`{name}` has no value, but must be {expected}"),
            _ => format!("`{name}` must be {expected}, but is {}", node.found()),
        };
        let mistake = self.mistake(&node.span, message).hint(format!("write for example `{example}`"));
        self.report(mistake);
        None
    }

    /// Reports that the value is wrong although its type is right.
    pub(crate) fn refuse<T>(
        &mut self,
        item: NamedNode<'_>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Option<T> {
        let mistake = self.mistake(&item.node.span, message).hint(hint);
        self.report(mistake);
        None
    }

    /// The result of a parser of texts; reports its error at the place in the file.
    pub(crate) fn parsed<T>(&mut self, item: NamedNode<'_>, parsed: Result<T, TextError>) -> Option<T> {
        match parsed {
            Ok(value) => Some(value),
            Err(error) => {
                let at = self.inside(item, &error.at);
                let mistake = Mistake { hint: error.hint, ..Mistake::new(self.file, at, error.message) };
                self.report(mistake);
                None
            }
        }
    }

    /// The place in the file of a part of a value's text.
    pub(crate) fn inside(&self, item: NamedNode<'_>, at: &Range<usize>) -> Range<usize> {
        match &item.node.value {
            YamlValue::Scalar(scalar) => yaml::inside(self.text, &item.node.span, scalar, at),
            _ => yaml::first_line(self.text, &item.node.span),
        }
    }

    /// A text. A number is read as its text; a boolean is a mistake, because it is more likely unintended.
    pub(crate) fn text<'n>(&mut self, item: NamedNode<'n>) -> Option<&'n str> {
        match &item.node.value {
            YamlValue::Scalar(scalar) => match scalar.kind() {
                ScalarKind::Bool(value) => self.refuse(
                    item,
                    format!("`{}` must be a text, but is `{value}`", item.name),
                    format!("quote it if a text is intended: \"{value}\""),
                ),
                _ => self.not_empty(item, scalar),
            },
            _ => self.wrong(item, "a text", example_for(item.name)),
        }
    }

    /// Any text, number or boolean, as it was written.
    pub(crate) fn value<'n>(&mut self, item: NamedNode<'n>) -> Option<&'n str> {
        match &item.node.value {
            YamlValue::Scalar(scalar) => Some(&scalar.text),
            _ => self.wrong(item, "a text", example_for(item.name)),
        }
    }

    fn not_empty<'n>(&mut self, item: NamedNode<'n>, scalar: &'n YamlScalar) -> Option<&'n str> {
        if scalar.text.trim().is_empty() && item.name != "description" {
            return self.refuse(item, format!("`{}` is empty", item.name), "leave the key out if nothing is meant");
        }
        Some(&scalar.text)
    }

    pub(crate) fn bool(&mut self, item: NamedNode<'_>) -> Option<bool> {
        if let YamlValue::Scalar(scalar) = &item.node.value {
            if let ScalarKind::Bool(value) = scalar.kind() {
                return Some(value);
            }
            let meant = match scalar.text.to_lowercase().as_str() {
                "yes" | "on" | "y" | "true" | "1" => Some("true"),
                "no" | "off" | "n" | "false" | "0" => Some("false"),
                _ => None,
            };
            if let Some(meant) = meant {
                let message = format!("`{}` must be `true` or `false`, but is {}", item.name, item.node.found());
                return self.refuse(item, message, format!("write `{meant}` without quotes"));
            }
        }
        self.wrong(item, "`true` or `false`", "true")
    }

    /// A key whose only value is `true`.
    pub(crate) fn only_true(&mut self, item: NamedNode<'_>) -> Option<()> {
        match self.bool(item)? {
            true => Some(()),
            false => {
                let message = format!("`{}` can only be `true`", item.name);
                self.refuse(item, message, "leave the key out instead")
            }
        }
    }

    /// A whole number within bounds.
    pub(crate) fn whole(&mut self, item: NamedNode<'_>, least: i64, most: i64) -> Option<i64> {
        let YamlValue::Scalar(scalar) = &item.node.value else {
            return self.wrong(item, "a whole number", &least.to_string());
        };
        let Some(number) = yaml::integer(&scalar.text).filter(|_| scalar.kind() == ScalarKind::Integer) else {
            let trimmed = scalar.text.trim_start_matches('0');
            if trimmed.len() < scalar.text.len() && yaml::integer(trimmed).is_some() {
                let message = format!("`{}` is not a number, as it begins with a zero", scalar.text);
                return self.refuse(item, message, format!("write `{trimmed}`, or `0o{trimmed}` if it is octal"));
            }
            return self.wrong(item, "a whole number", &least.max(1).to_string());
        };
        if (least..=most).contains(&number) {
            return Some(number);
        }
        let bounds =
            if most >= i64::from(u32::MAX) { format!("at least {least}") } else { format!("from {least} to {most}") };
        self.refuse(
            item,
            format!("`{}` must be {bounds}, but is {number}", item.name),
            format!("write for example `{}`", least.max(1).min(most)),
        )
    }

    /// A count that fits the job's types.
    pub(crate) fn count(&mut self, item: NamedNode<'_>, least: u32) -> Option<u32> {
        self.whole(item, i64::from(least), i64::from(u32::MAX)).and_then(|number| u32::try_from(number).ok())
    }

    /// A number, with or without decimals.
    pub(crate) fn number(&mut self, item: NamedNode<'_>, least: f64) -> Option<f64> {
        let number = match &item.node.value {
            YamlValue::Scalar(scalar) if matches!(scalar.kind(), ScalarKind::Integer | ScalarKind::Float) => {
                scalar.text.parse().ok()
            }
            _ => None,
        };
        match number {
            Some(number) if number >= least => Some(number),
            Some(number) => {
                let message = format!("`{}` must be at least {least}, but is {number}", item.name);
                self.refuse(item, message, format!("write for example `{}`", least.ceil() + 1.0))
            }
            None => self.wrong(item, "a number", "2"),
        }
    }

    /// One of the given words.
    pub(crate) fn word<'w>(&mut self, item: NamedNode<'_>, words: &'w [&'w str]) -> Option<&'w str> {
        let listed = || words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let YamlValue::Scalar(scalar) = &item.node.value else {
            return self.wrong(item, &format!("one of {}", listed()), words.first().copied().unwrap_or_default());
        };
        if let Some(word) = words.iter().find(|word| **word == scalar.text) {
            return Some(word);
        }
        let message = format!("`{}` cannot be `{}`", item.name, shortened(&scalar.text));
        let hint = match did_you_mean(&scalar.text, words.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`? It can be {}", listed()),
            None => format!("it can be {}", listed()),
        };
        self.refuse(item, message, hint)
    }

    /// Items of a list.
    pub(crate) fn list<'n>(&mut self, item: NamedNode<'n>, example: &str) -> Option<&'n [YamlNode]> {
        match &item.node.value {
            YamlValue::List(items) => Some(items),
            _ => self.wrong(item, "a list", example),
        }
    }

    /// Items of a list that is not empty.
    pub(crate) fn some<'n>(&mut self, item: NamedNode<'n>, example: &str) -> Option<&'n [YamlNode]> {
        let items = self.list(item, example)?;
        if items.is_empty() {
            let message = format!("`{}` is an empty list, but needs at least one item", item.name);
            return self.refuse(item, message, format!("write for example `{example}`"));
        }
        Some(items)
    }

    /// One value, or a list of them.
    pub(crate) fn one_or_some<'n>(&mut self, item: NamedNode<'n>, example: &str) -> Option<&'n [YamlNode]> {
        match &item.node.value {
            YamlValue::Scalar(_) => Some(std::slice::from_ref(item.node)),
            _ => self.some(item, example),
        }
    }

    /// Reads every item; `None` if one of them is invalid.
    pub(crate) fn all_of<T>(
        &mut self,
        item: NamedNode<'_>,
        nodes: &[YamlNode],
        read: fn(&mut JobReader<'_>, NamedNode<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let values: Vec<T> = nodes.iter().filter_map(|node| read(self, item.item(node))).collect();
        (values.len() == nodes.len()).then_some(values)
    }

    /// Texts of a list.
    pub(crate) fn texts(&mut self, item: NamedNode<'_>, example: &str) -> Option<Vec<String>> {
        let nodes = self.list(item, example)?;
        let texts = nodes.iter().filter_map(|node| self.text(item.item(node)).map(str::to_owned)).collect();
        Some(texts)
    }
}

/// An example value for a key.
fn example_for(key: &str) -> &'static str {
    match key {
        "cron" => "\"0 18 * * Mon-Fri\"",
        "timezone" | "tz" => "Europe/Berlin",
        "calendar" => "Mon-Fri",
        "second" | "minute" | "hour" | "day" | "month" | "week" | "year" => "\"1,2\"",
        "day_of_week" => "mon-fri",
        _ => "\"some words\"",
    }
}
