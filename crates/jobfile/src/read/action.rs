//! Reads actions.

use std::collections::BTreeMap;

use cronhold_core::job::{Action, HttpTarget, RunEvent, TemplateScope};
use cronhold_core::template::Template;
use cronhold_schedule::text::shortened;

use super::names;
use super::reader::{JobReader, NamedNode};
use crate::keys;
use crate::yaml::YamlValue;

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
            let of_event = nodes
                .iter()
                .filter_map(|node| self.scoped(TemplateScope::Action, |reader| reader.action(item.item(node))));
            actions.insert(event, of_event.collect());
        }
        actions
    }

    fn action(&mut self, item: NamedNode<'_>) -> Option<Action> {
        let fields = self.fields(item, &keys::ACTION)?;
        let (kind, item) = fields.kind()?;
        match kind {
            "run" => self.run(item),
            "webhook" => self.webhook(item).map(Action::Webhook),
            "email" => self.email(item),
            "command" => self.template_text(item).map(Action::Command),
            _ => self.publish(item),
        }
    }

    fn run(&mut self, item: NamedNode<'_>) -> Option<Action> {
        if !matches!(item.node.value, YamlValue::Map(_)) {
            return Some(Action::Run { job: self.job_id(item)?, args: BTreeMap::new() });
        }
        let fields = self.fields(item, &keys::RUN)?;
        let job = fields.get("job").and_then(|item| self.job_id(item));
        let args = fields.get("args").map(|item| self.arg_templates(item)).unwrap_or_default();
        Some(Action::Run { job: job?, args })
    }

    fn webhook(&mut self, item: NamedNode<'_>) -> Option<HttpTarget> {
        if !matches!(item.node.value, YamlValue::Map(_)) {
            return self.url(item).map(HttpTarget::new);
        }
        self.record(item, HttpTarget::new(Template::literal("")))
    }

    fn email(&mut self, item: NamedNode<'_>) -> Option<Action> {
        let fields = self.fields(item, &keys::EMAIL)?;
        let to = fields.get("to").and_then(|item| {
            let nodes = self.one_or_some(item, "[ops@example.org]")?;
            let addresses: Vec<_> = nodes.iter().filter_map(|node| self.address(item.item(node))).collect();
            (addresses.len() == nodes.len()).then_some(addresses)
        });
        let subject = fields.get("subject").and_then(|item| self.template(item));
        let body = fields.get("body").and_then(|item| self.template(item));
        Some(Action::Email { to: to?, subject, body })
    }

    fn address(&mut self, item: NamedNode<'_>) -> Option<String> {
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

    fn publish(&mut self, item: NamedNode<'_>) -> Option<Action> {
        if !matches!(item.node.value, YamlValue::Map(_)) {
            let channel = self.channel(item).and_then(|_| self.template_text(item))?;
            return Some(Action::Publish { channel, message: None });
        }
        let fields = self.fields(item, &keys::PUBLISH)?;
        let channel = fields.get("channel").and_then(|item| self.channel(item).and_then(|_| self.template_text(item)));
        let message = fields.get("message").and_then(|item| self.template(item));
        Some(Action::Publish { channel: channel?, message })
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
