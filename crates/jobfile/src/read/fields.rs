//! Opens a map with the keys of a table. Unknown, missing, conflicting and unsupported keys are reported here, so that the
//! readers of its values do not have to.

use cronhold_schedule::text::{did_you_mean, shortened};

use super::reader::{JobReader, NamedNode};
use crate::keys::{KeySpec, KeyTable};
use crate::yaml::{YamlEntry, YamlNode, YamlValue};

/// A map whose keys have been checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'n> {
    table: &'static KeyTable,
    entries: &'n [YamlEntry],
    pub(crate) node: &'n YamlNode,
    /// The value of the first key, if it is given instead of the map.
    first: Option<NamedNode<'n>>,
}

impl<'n> Fields<'n> {
    /// The value of a key, given under its canonical name or an alias.
    pub(crate) fn get(&self, name: &'static str) -> Option<NamedNode<'n>> {
        match self.first {
            Some(first) => self.table.keys.first().is_some_and(|key| key.name == name).then_some(first),
            None => self.entry(name).map(NamedNode::entry),
        }
    }

    fn entry(&self, name: &'static str) -> Option<&'n YamlEntry> {
        debug_assert!(
            self.table.key(name).is_some_and(|key| key.name == name),
            "{name} is not a key of {}",
            self.table.name
        );
        let key = self.table.key(name)?;
        self.entries.iter().find(|entry| entry.key == key.name || key.aliases.contains(&entry.key.as_str()))
    }

    /// The key of the kind, of which there is exactly one, under its canonical name.
    pub(crate) fn kind(&self) -> Option<(&'static str, NamedNode<'n>)> {
        let names = self.table.one_of.iter().flat_map(|group| group.iter());
        names.copied().find_map(|name| Some((name, self.get(name)?)))
    }
}

impl JobReader<'_> {
    /// Opens a map with the keys of a table.
    pub(crate) fn fields<'n>(&mut self, item: NamedNode<'n>, table: &'static KeyTable) -> Option<Fields<'n>> {
        let YamlValue::Map(entries) = &item.node.value else {
            let first = table.keys.iter().find(|key| key.required).or(table.keys.first()).map_or("", |key| key.name);
            return self.wrong(item, "a map", &format!("{{{first}: …}}"));
        };
        let fields = Fields { table, entries, node: item.node, first: None };
        let known: Vec<Option<&KeySpec>> = entries.iter().map(|entry| table.key(&entry.key)).collect();
        for (entry, key) in entries.iter().zip(&known) {
            match key {
                Some(key) => self.report_unsupported(key, entry),
                None => self.unknown(table, entry),
            }
        }
        for key in table.keys {
            let is_key = |found: &Option<&KeySpec>| found.is_some_and(|found| std::ptr::eq(found, key));
            let mut given = entries.iter().zip(&known).filter(|(_, found)| is_key(found)).map(|(entry, _)| entry);
            let first = given.next();
            if let (Some(first), Some(second)) = (first, given.next()) {
                let message = format!("`{}` and `{}` are two names of the same key", first.key, second.key);
                let mistake = self.mistake(&second.key_span, message);
                self.report(mistake.hint("keep one of them").related(first.key_span.clone(), "first here"));
            }
            if key.required && first.is_none() {
                let message = format!("{} needs the key `{}`", table.noun, key.name);
                let mistake = self.mistake(&item.node.span, message).hint(format!("`{}`: {}", key.name, key.doc));
                self.report(mistake);
            }
        }
        self.exactly_one(&fields);
        Some(fields)
    }

    /// Opens a map, or the value of its first key that is given instead of it.
    pub(crate) fn fields_or_first<'n>(&mut self, item: NamedNode<'n>, table: &'static KeyTable) -> Option<Fields<'n>> {
        match item.node.value {
            YamlValue::Map(_) => self.fields(item, table),
            _ => Some(Fields { table, entries: &[], node: item.node, first: Some(item) }),
        }
    }

    fn unknown(&mut self, table: &'static KeyTable, entry: &YamlEntry) {
        if self.is_full() {
            return;
        }
        let message = format!("{} has no key `{}`", table.noun, shortened(&entry.key));
        let names: Vec<&str> = table.names().collect();
        let hint = match did_you_mean(&entry.key, names.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("its keys are {}", table.keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", ")),
        };
        let mistake = self.mistake(&entry.key_span, message).hint(hint);
        self.report(mistake);
    }

    fn exactly_one(&mut self, fields: &Fields<'_>) {
        let table = fields.table;
        let mut found = table.one_of.iter().filter_map(|group| group.iter().find_map(|name| fields.entry(name)));
        let (first, second) = (found.next(), found.next());
        match (first, second) {
            (Some(first), Some(second)) => {
                let (first, second) =
                    if first.key_span.start <= second.key_span.start { (first, second) } else { (second, first) };
                let message = format!("`{}` cannot be combined with `{}`", second.key, first.key);
                let mistake = self.mistake(&second.key_span, message).related(first.key_span.clone(), "first here");
                self.report(mistake.hint(format!("{} has exactly one of them", table.noun)));
            }
            (None, _) if !table.one_of.is_empty() => {
                let names: Vec<String> = table
                    .one_of
                    .iter()
                    .map(|group| group.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
                    .collect();
                let message = format!(
                    "{} needs {}{}",
                    table.noun,
                    if names.len() > 1 { "one of " } else { "" },
                    names.join(", ")
                );
                let mistake = self.mistake(&fields.node.span, message);
                self.report(mistake);
            }
            _ => {}
        }
    }
}
