//! Writes a job in the keys of a job file, as JSON, without keys that have their default. The API and the command line show
//! it, and stores keep it. Maps are written by their `record!`, `variant!` or `variants!`; this module writes values that
//! have several forms.

use std::collections::BTreeMap;

use cronhold_core::job::{
    ActionRule, Batching, CatchUpRule, EnvValue, HeaderValue, Job, JobSchedule, LockPolicy, NodeSelector,
    OverlapPolicy, Param, Program, QUEUE_LIMIT_DEFAULT, RunEvent,
};
use cronhold_core::template::Template;
use serde_json::{Map, Value, json};

use crate::keys::{ACTION_MAP, KeyTable, PROGRAM_MAP, QUEUE_MAP, STOP_SCHEDULE_MAP, write_record};

/// The job as a map that `read_job` reads back into the same job.
pub fn write_job(job: &Job) -> Value {
    write_record(job, &Job::new(job.program.clone()))
}

/// Collects the keys of a map.
#[derive(Default)]
struct MapBuilder {
    map: Map<String, Value>,
}

impl MapBuilder {
    fn put(&mut self, key: &str, value: Value) {
        self.map.insert(key.to_owned(), value);
    }

    /// Adds a key unless its value is the default.
    fn unless(&mut self, is_default: bool, key: &str, value: impl FnOnce() -> Value) {
        if !is_default {
            self.put(key, value());
        }
    }

    fn into_value(self) -> Value {
        Value::Object(self.map)
    }
}

pub(crate) fn map<'a, T: 'a>(
    values: impl IntoIterator<Item = (&'a String, &'a T)>,
    write: impl Fn(&T) -> Value,
) -> Value {
    Value::Object(values.into_iter().map(|(name, value)| (name.clone(), write(value))).collect())
}

pub(crate) fn actions(on: &BTreeMap<RunEvent, Vec<ActionRule>>) -> Value {
    let events =
        on.iter().map(|(event, actions)| (event.name().to_owned(), actions.iter().map(ACTION_MAP.write).collect()));
    Value::Object(events.collect())
}

pub(crate) fn template(template: &Template) -> Value {
    let text = template.text();
    // A literal text that looks like a template has to be escaped.
    let is_live = Template::parse(text).map_or(true, |parsed| !parsed.is_literal());
    if template.is_literal() && is_live { json!(format!("{{% raw %}}{text}{{% endraw %}}")) } else { json!(text) }
}

pub(crate) fn param(param: &Param) -> Value {
    write_record(param, &Param::default())
}

pub(crate) fn schedule(schedule: &JobSchedule) -> Value {
    let mut value = json!(schedule.spec);
    let mut keys = MapBuilder::default();
    keys.unless(schedule.name.is_none(), "name", || json!(schedule.name));
    keys.unless(schedule.args.is_empty(), "args", || json!(schedule.args));
    keys.unless(schedule.enabled, "enabled", || json!(false));
    keys.unless(schedule.stop.is_none(), "stop", || json!(schedule.stop.as_ref().map(STOP_SCHEDULE_MAP.write)));
    if let Value::Object(map) = &mut value {
        map.extend(keys.map);
    }
    value
}

pub(crate) fn program(program: &Program) -> Value {
    match program {
        Program::Shell(command) => template(command),
        Program::Exec(words) => words.iter().map(template).collect(),
        _ => (PROGRAM_MAP.write)(program),
    }
}

/// The value of a table's first key if the map has no other, else the map.
pub(crate) fn first_if_alone(table: &KeyTable, map: Value) -> Value {
    let first = table.keys.first().filter(|_| map.as_object().is_some_and(|map| map.len() == 1));
    first.and_then(|key| map.get(key.name)).cloned().unwrap_or(map)
}

pub(crate) fn lock(lock: &LockPolicy) -> Value {
    match lock {
        LockPolicy::None => json!(false),
        LockPolicy::Job => json!(true),
        LockPolicy::Named(name) => json!(name),
    }
}

pub(crate) fn overlap(overlap: OverlapPolicy) -> Value {
    match overlap {
        OverlapPolicy::Allow => json!("allow"),
        OverlapPolicy::Skip => json!("skip"),
        OverlapPolicy::Queue { limit: QUEUE_LIMIT_DEFAULT } => json!("queue"),
        OverlapPolicy::Queue { .. } => json!({"queue": (QUEUE_MAP.write)(&overlap)}),
        OverlapPolicy::Replace => json!("replace"),
    }
}

pub(crate) fn catch_up(catch_up: &CatchUpRule) -> Value {
    let default = CatchUpRule::default();
    if catch_up.within == default.within { json!(catch_up.policy) } else { write_record(catch_up, &default) }
}

pub(crate) fn env_value(value: &EnvValue) -> Value {
    match value {
        EnvValue::Text(text) => template(text),
        EnvValue::File(path) => json!({"file": path}),
        EnvValue::Env(name) => json!({"env": name}),
    }
}

pub(crate) fn header_value(value: &HeaderValue) -> Value {
    match value {
        HeaderValue::Text(text) => template(text),
        HeaderValue::Secret { source, prefix } => {
            let mut value = json!(source);
            if let Some(map) = value.as_object_mut().filter(|_| !prefix.is_empty()) {
                map.insert("prefix".to_owned(), json!(prefix));
            }
            value
        }
    }
}

pub(crate) fn nodes(nodes: &NodeSelector) -> Value {
    match nodes {
        NodeSelector::Any => json!([]),
        NodeSelector::Labels(labels) => json!(labels),
        NodeSelector::Each(labels) if labels.is_empty() => json!("each"),
        NodeSelector::Each(labels) => json!({"each": labels}),
    }
}

pub(crate) fn batching(batching: Batching) -> Value {
    let mut keys = MapBuilder::default();
    let (policy, concurrent) = match batching {
        Batching::Greedy { concurrent, most } => {
            keys.unless(most == Batching::MOST_DEFAULT, "most", || json!(most));
            ("greedy", concurrent)
        }
        Batching::Logarithmic { concurrent, most, base } => {
            keys.unless(most == Batching::MOST_DEFAULT, "most", || json!(most));
            keys.put("base", json!(base));
            ("logarithmic", concurrent)
        }
        Batching::Newest { concurrent, timeout } => {
            keys.unless(timeout == Batching::TIMEOUT_DEFAULT, "timeout", || json!(timeout));
            ("newest", concurrent)
        }
    };
    keys.put("policy", json!(policy));
    keys.unless(concurrent == 1, "concurrent", || json!(concurrent));
    keys.into_value()
}
