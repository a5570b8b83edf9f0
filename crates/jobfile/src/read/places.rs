//! Places of the parts of a job in its file, for checks that need more than one file: unknown jobs in conditions, cycles.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

#[cfg(test)]
use crate::yaml;
use crate::yaml::{YamlEntry, YamlNode, YamlValue};

/// The places of one file, by dotted path such as `conditions[0].after.job` or `on.success[0].run`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobPlaces {
    root: Option<YamlNode>,
    first_lines: Vec<usize>,
}

impl JobPlaces {
    /// No places. All files that have none share them.
    pub(crate) fn none() -> Arc<Self> {
        static NONE: LazyLock<Arc<JobPlaces>> = LazyLock::new(Arc::default);
        Arc::clone(&NONE)
    }

    pub(super) fn new(root: Option<YamlNode>, text: &str) -> Self {
        let first_lines = text.match_indices('\n').map(|(at, _)| at).collect();
        Self { root, first_lines }
    }

    /// The positions in a text that contains only schedules, under the paths that they have in a job file.
    pub(super) fn of_schedules(root: YamlNode, text: &str) -> Self {
        let span = root.span.clone();
        let entry = YamlEntry { key: "schedule".to_owned(), key_span: span.start..span.start, value: root };
        Self::new(Some(YamlNode { value: YamlValue::Map(vec![entry]), span }), text)
    }

    /// Byte range of a path, or of its nearest ancestor in the file if a short form was written (`after: feeds/x` has no
    /// `job` of its own, a single schedule no `[0]`).
    pub fn get(&self, path: &str) -> Range<usize> {
        let Some(root) = &self.root else { return 0..0 };
        let mut node = root;
        for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
            let next = match (&node.value, step.strip_suffix(']')) {
                (YamlValue::List(items), Some(index)) => index.parse::<usize>().ok().and_then(|index| items.get(index)),
                (YamlValue::Map(_), None) => node.get(step),
                // A single item may be written without a list.
                (_, Some("0")) => Some(node),
                _ => None,
            };
            let Some(next) = next else { break };
            node = next;
        }
        self.first_line(node)
    }

    /// Byte range of the key itself; `None` if the path does not lead to a key.
    pub fn key(&self, path: &str) -> Option<Range<usize>> {
        let (parent, key) = path.rsplit_once('.').unwrap_or(("", path));
        let mut node = self.root.as_ref()?;
        for step in parent.split(['.', '[']).filter(|step| !step.is_empty()) {
            node = match (&node.value, step.strip_suffix(']')) {
                (YamlValue::List(items), Some(index)) => items.get(index.parse::<usize>().ok()?)?,
                (_, Some(_)) => node,
                _ => node.get(step)?,
            };
        }
        node.entries().iter().find(|entry| entry.key == key).map(|entry| entry.key_span.clone())
    }

    /// The value of a schedule's key, which may be inside the kind (`daily: {calendar: …}`); the whole schedule if it does
    /// not have that key.
    pub fn of_schedule(&self, index: usize, key: &str) -> Range<usize> {
        let schedule = format!("schedule[{index}]");
        let paths = ["", "daily.", "daily_interval."].map(|kind| format!("{schedule}.{kind}{key}"));
        self.get(paths.iter().find(|path| self.key(path).is_some()).unwrap_or(&schedule))
    }

    fn first_line(&self, node: &YamlNode) -> Range<usize> {
        let Range { start, end } = node.span;
        let newline = self.first_lines.partition_point(|at| *at < start);
        start..self.first_lines.get(newline).map_or(end, |at| end.min(*at))
    }
}

/// The positions in a text that is parsed only for them.
#[cfg(test)]
fn places(text: &str) -> JobPlaces {
    JobPlaces::new(yaml::parse("x.yaml", text).0, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_resolve_to_places() {
        let text = "schedule: {every: 1m}\nconditions:\n  - after: feeds/x\n  - after:\n      job: feeds/y\n      args: {a: b}\n";
        let places = places(text);
        for (path, expected) in [
            ("schedule", "{every: 1m}"),
            ("schedule[0]", "{every: 1m}"),
            ("schedule[0].every", "1m"),
            ("conditions[0].after.job", "feeds/x"),
            ("conditions[1].after.job", "feeds/y"),
            ("conditions[1].after", "job: feeds/y"),
            ("conditions[1].after.args.a", "b"),
        ] {
            assert_eq!(&text[places.get(path)], expected, "{path}");
        }
        assert_eq!(places.key("conditions[1].after.args").map(|at| &text[at]), Some("args"));
        assert_eq!(places.key("program"), None);
    }

    #[test]
    fn keys_of_schedules_are_found_in_their_kind() {
        let list = "- {every: 1m, calendar: a}\n- {daily: {times: '18:00', calendar: b}}\n- '@daily'\n";
        let places = JobPlaces::of_schedules(yaml::parse("x.yaml", list).0.expect("a list"), list);
        for (index, expected) in [(0, "a"), (1, "b"), (2, "'@daily'")] {
            assert_eq!(&list[places.of_schedule(index, "calendar")], expected, "{index}");
        }
        let map = "{hour: 5, calendar: c}";
        let places = JobPlaces::of_schedules(yaml::parse("x.yaml", map).0.expect("a map"), map);
        assert_eq!(&map[places.of_schedule(0, "calendar")], "c");
        assert_eq!(&map[places.of_schedule(0, "timezone")], map);
    }
}
