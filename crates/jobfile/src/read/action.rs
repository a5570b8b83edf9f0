//! Reads the events of actions, and values in actions that have rules of their own.

use std::collections::BTreeMap;

use cronhold_core::job::{ActionFilter, ActionRule, Job, OutcomeChange, RunEvent, TemplateScope};
use cronhold_core::run::State;
use cronhold_schedule::text::shortened;

use super::names;
use super::reader::{JobReader, NamedNode};
use crate::keys::ACTION_MAP;
use crate::yaml::{YamlNode, YamlValue};

impl JobReader<'_> {
    /// Actions by the event that they belong to.
    pub(crate) fn actions(&mut self, item: NamedNode<'_>) -> BTreeMap<RunEvent, Vec<ActionRule>> {
        let is_event: names::NameCheck = |name| RunEvent::parse(name).map(drop);
        let entries = self.names(item, is_event, "{failure: [{command: page-me}]}").unwrap_or_default();
        let mut actions = BTreeMap::new();
        for entry in entries {
            let Ok(event) = RunEvent::parse(&entry.key) else { continue };
            let item = NamedNode::entry(entry);
            let nodes = self.list(item, "[{run: {job: reports/prices}}]").unwrap_or_default();
            let of_event = nodes.iter().filter_map(|node| {
                let rule = self.scoped(TemplateScope::Action, |reader| (ACTION_MAP.read)(reader, item.item(node)))?;
                self.check_filter(event, &rule, node)?;
                Some(rule)
            });
            actions.insert(event, of_event.collect());
        }
        actions
    }

    /// The filter of an action.
    pub(crate) fn action_filter(&mut self, item: NamedNode<'_>) -> Option<ActionFilter> {
        const HINT: &str = "write for example `when: {outcome: changed}`, or leave `when` out";
        let filter = self.record(item, ActionFilter::default())?;
        if item.node.entries().is_empty() {
            return self.refuse(item, "`when` is empty", HINT);
        }
        if filter.outcome == Some(OutcomeChange::Changed) && filter.in_a_row.is_some() {
            return self.refuse(
                item,
                "`outcome: changed` and `in_a_row` exclude each other",
                "a changed outcome is the first in a row; leave one of them out",
            );
        }
        // A filter whose keys are all invalid would select everything.
        (filter != ActionFilter::default()).then_some(filter)
    }

    /// Args and the values that each may have.
    pub(crate) fn arg_values(&mut self, item: NamedNode<'_>) -> BTreeMap<String, Vec<String>> {
        let entries = self.names(item, names::param, "{region: eu}").unwrap_or_default();
        let mut args = BTreeMap::new();
        for entry in entries {
            let item = NamedNode::entry(entry);
            let nodes = self.one_or_some(item, "[eu, us]");
            let values =
                nodes.and_then(|nodes| self.all_of(item, nodes, |reader, item| reader.value(item).map(str::to_owned)));
            if let Some(values) = values {
                args.insert(entry.key.clone(), values);
            }
        }
        args
    }

    /// Checks that a filter by outcomes belongs to an event that is one.
    fn check_filter(&mut self, event: RunEvent, rule: &ActionRule, node: &YamlNode) -> Option<()> {
        let (Some(filter), Some(when)) = (&rule.when, node.get("when")) else { return Some(()) };
        let place = |key: &'static str| when.get(key).map(|node| NamedNode { name: key, node });
        let outcome = place("outcome").filter(|_| filter.outcome.is_some());
        let of_outcomes = outcome.or_else(|| place("in_a_row").filter(|_| filter.in_a_row.is_some()));
        match (event, of_outcomes) {
            (_, None) => Some(()),
            (RunEvent::State(State::Failure | State::Error), Some(item))
                if filter.outcome == Some(OutcomeChange::Recovered) =>
            {
                let message = format!("`{event}` is not a recovery, so this action would never happen");
                self.refuse(item, message, "move the action to `success`")
            }
            (RunEvent::Finished | RunEvent::State(State::Success | State::Failure | State::Error), Some(_)) => Some(()),
            (_, Some(item)) => {
                let message = format!("`{}` compares outcomes, and `{event}` is not one", item.name);
                self.refuse(item, message, "use it with `success`, `failure`, `error` or `finished`")
            }
        }
    }

    /// Checks what the actions of a job need besides themselves: the time after which a run is late, and the params that
    /// filters name.
    pub(super) fn check_events(&mut self, on: &YamlNode, job: &Job) {
        for entry in on.entries() {
            let YamlValue::List(nodes) = &entry.value.value else { continue };
            if entry.key == RunEvent::Late.name() && !nodes.is_empty() && job.late.is_none() {
                let mistake = self.mistake(&entry.key_span, "the job does not say when a run is late");
                self.report(mistake.hint("add for example `late: 10m`"));
            }
            for args in nodes.iter().filter_map(|node| node.get("when")?.get("args")) {
                self.check_arg_entries(args, &job.params);
            }
        }
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
