//! Reads conditions.

use cronhold_core::job::{Condition, Probe, Requirement};
use cronhold_core::run::State;

use super::reader::{JobReader, NamedNode};
use crate::keys;
use crate::yaml::YamlValue;

impl JobReader<'_> {
    /// One condition. Nesting is bounded by the depth of the file.
    pub(crate) fn condition(&mut self, item: NamedNode<'_>) -> Option<Condition> {
        let fields = self.fields(item, &keys::CONDITION)?;
        let requires = fields.kind().and_then(|(kind, item)| self.requirement(kind, item));
        let timeout = fields.get("timeout").and_then(|item| self.some_span(item));
        let poll = fields.get("poll").and_then(|item| self.some_span(item)).unwrap_or(Condition::POLL_DEFAULT);
        Some(Condition { requires: requires?, timeout, poll })
    }

    fn requirement(&mut self, kind: &str, item: NamedNode<'_>) -> Option<Requirement> {
        match kind {
            "after" => self.after(item),
            "max_running" => self.max_running(item),
            "skip_duplicate" => self.skip_duplicate(item),
            "file" => self.template_text(item).map(|path| Requirement::Probe(Probe::File(path))),
            "http" => self.http(item).map(|request| Requirement::Probe(Probe::Http(Box::new(request)))),
            "command" => self.template_text(item).map(|command| Requirement::Probe(Probe::Command(command))),
            "window" => self.window(item),
            "all" => self.group(item).map(Requirement::All),
            "any" => self.group(item).map(Requirement::Any),
            _ => self.condition(item).map(|condition| Requirement::Not(Box::new(condition))),
        }
    }

    fn group(&mut self, item: NamedNode<'_>) -> Option<Vec<Condition>> {
        let nodes = self.some(item, "[{max_running: 1}]")?;
        let conditions: Vec<_> = nodes.iter().filter_map(|node| self.condition(item.item(node))).collect();
        (conditions.len() == nodes.len()).then_some(conditions)
    }

    fn after(&mut self, item: NamedNode<'_>) -> Option<Requirement> {
        if !matches!(item.node.value, YamlValue::Map(_)) {
            let job = self.job_id(item)?;
            let states = vec![State::Success];
            return Some(Requirement::After { job, args: Default::default(), states, within: None, must_exist: false });
        }
        let fields = self.fields(item, &keys::AFTER)?;
        let job = fields.get("job").and_then(|item| self.job_id(item));
        let args = fields.get("args").map(|item| self.arg_templates(item)).unwrap_or_default();
        let states = fields.get("states").and_then(|item| self.states(item)).unwrap_or_else(|| vec![State::Success]);
        let within = fields.get("within").and_then(|item| self.some_span(item));
        let must_exist = fields.get("must_exist").and_then(|item| self.bool(item)).unwrap_or(false);
        Some(Requirement::After { job: job?, args, states, within, must_exist })
    }

    fn max_running(&mut self, item: NamedNode<'_>) -> Option<Requirement> {
        if !matches!(item.node.value, YamlValue::Map(_)) {
            let count = self.count(item, 1)?;
            return Some(Requirement::MaxRunning { count, same_args: false, pool: None });
        }
        let fields = self.fields(item, &keys::MAX_RUNNING)?;
        let count = fields.get("count").and_then(|item| self.count(item, 1));
        let same_args = fields.get("same_args").and_then(|item| self.bool(item)).unwrap_or(false);
        let pool = fields.get("pool").and_then(|item| self.text(item)).map(str::to_owned);
        Some(Requirement::MaxRunning { count: count?, same_args, pool })
    }

    fn skip_duplicate(&mut self, item: NamedNode<'_>) -> Option<Requirement> {
        let default = Requirement::DUPLICATE_STATES_DEFAULT.to_vec();
        if !matches!(item.node.value, YamlValue::Map(_)) {
            self.only_true(item)?;
            return Some(Requirement::SkipDuplicate { states: default });
        }
        let fields = self.fields(item, &keys::SKIP_DUPLICATE)?;
        let states = fields.get("states").map(|item| self.states(item));
        Some(Requirement::SkipDuplicate { states: states.unwrap_or(Some(default))? })
    }

    fn window(&mut self, item: NamedNode<'_>) -> Option<Requirement> {
        let fields = self.fields(item, &keys::WINDOW)?;
        let from = fields.get("from").and_then(|item| self.time(item));
        let until = fields.get("until").and_then(|item| self.time(item));
        let zone = fields.get("timezone").and_then(|item| self.zone(item));
        if let (Some(from), Some(until), Some(item)) = (from, until, fields.get("until"))
            && from == until
        {
            return self.refuse(item, "the window begins and ends at the same time", "leave the condition out instead");
        }
        Some(Requirement::Window { from: from?, until: until?, zone })
    }

    fn states(&mut self, item: NamedNode<'_>) -> Option<Vec<State>> {
        let nodes = self.some(item, "[success]")?;
        let states: Vec<State> = nodes.iter().filter_map(|node| self.state(item.item(node))).collect();
        (states.len() == nodes.len()).then_some(states)
    }

    fn state(&mut self, item: NamedNode<'_>) -> Option<State> {
        self.word(item, &State::NAMES).and_then(|name| State::parse(name).ok())
    }
}
