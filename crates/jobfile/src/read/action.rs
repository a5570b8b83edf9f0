//! Reads the events of actions, and values in actions that have rules of their own.

use std::collections::BTreeMap;

use cronhold_core::job::{Action, RunEvent, TemplateScope};
use cronhold_schedule::text::shortened;

use super::names;
use super::reader::{JobReader, NamedNode};
use crate::keys::ACTION_MAP;

impl JobReader<'_> {
    /// Actions by the transition that they belong to.
    pub(crate) fn actions(&mut self, item: NamedNode<'_>) -> BTreeMap<RunEvent, Vec<Action>> {
        let is_event: names::NameCheck = |name| RunEvent::parse(name).map(drop);
        let entries = self.names(item, is_event, "{failure: [{command: page-me}]}").unwrap_or_default();
        let mut actions = BTreeMap::new();
        for entry in entries {
            let Ok(event) = RunEvent::parse(&entry.key) else { continue };
            let item = NamedNode::entry(entry);
            let nodes = self.list(item, "[{run: {job: reports/prices}}]").unwrap_or_default();
            let of_event = nodes.iter().filter_map(|node| {
                self.scoped(TemplateScope::Action, |reader| (ACTION_MAP.read)(reader, item.item(node)))
            });
            actions.insert(event, of_event.collect());
        }
        actions
    }

    pub(crate) fn address(&mut self, item: NamedNode<'_>) -> Option<String> {
        let text = self.text(item)?;
        let valid = text
            .split_once('@')
            .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'));
        if !valid || text.contains(char::is_whitespace) {
            let message = format!("`{}` is not an address", shortened(text));
            return self.refuse(item, message, "write for example `ops@example.org`");
        }
        Some(text.to_owned())
    }

    /// A channel, which begins with `/`.
    pub(crate) fn channel<'n>(&mut self, item: NamedNode<'n>) -> Option<&'n str> {
        let text = self.text(item)?;
        if !text.starts_with('/') {
            let message = format!("the channel `{}` does not begin with `/`", shortened(text));
            return self.refuse(item, message, format!("write `/{}`", shortened(text)));
        }
        Some(text)
    }
}
