//! Which names a template or an expression uses. They are collected once, when it is parsed, and stored compactly,
//! because every job keeps them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::environment::FUNCTIONS;
use super::shape::TemplateShape;

/// Names in alphabetical order, without duplicates.
#[derive(Debug, Clone)]
pub(super) struct UsedNames(Box<[UsedName]>);

#[derive(Debug, Clone)]
struct UsedName {
    text: Box<str>,
    /// The offset of its first use.
    at: usize,
    /// Whether the text handles its absence nowhere.
    is_required: bool,
}

impl UsedNames {
    /// Combines the undeclared names that the engine found with the result of the scan.
    pub(super) fn new(undeclared: impl IntoIterator<Item = String>, shape: &TemplateShape) -> Self {
        let is_value = |name: &String| shape.plain.contains_key(name) || !FUNCTIONS.contains(&name.as_str());
        let sorted: BTreeSet<String> = undeclared.into_iter().filter(is_value).collect();
        let name = |name: String| UsedName {
            at: shape.plain.get(&name).copied().unwrap_or_default(),
            is_required: !shape.optional.contains(&name),
            text: name.into_boxed_str(),
        };
        Self(sorted.into_iter().map(name).collect())
    }

    pub(super) fn all(&self) -> BTreeSet<&str> {
        self.0.iter().map(|name| &*name.text).collect()
    }

    pub(super) fn required(&self) -> BTreeSet<&str> {
        self.0.iter().filter(|name| name.is_required).map(|name| &*name.text).collect()
    }

    /// The range of the first use of a name.
    pub(super) fn place_of(&self, name: &str) -> Option<Range<usize>> {
        let found = self.0.iter().find(|known| &*known.text == name)?;
        Some(found.at..found.at + name.len())
    }
}
