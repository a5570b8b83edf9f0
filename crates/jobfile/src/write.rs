//! Writes a job in the keys of a job file, as JSON, without keys that have their default. The API and the command line show
//! it, and stores keep it. Maps that are one type are written by their `record!`; this module writes values that have
//! several forms.

use std::collections::BTreeMap;

use cronhold_core::job::{
    Action, Batching, CatchUpRule, Condition, EnvValue, HttpProgram, HttpTarget, Job, JobSchedule, LockPolicy,
    NodeSelector, OverlapPolicy, Param, Probe, Program, QUEUE_LIMIT_DEFAULT, RemoteProgram, Requirement, RunEvent,
    StopSchedule, TaskProgram, Trigger,
};
use cronhold_core::run::State;
use cronhold_core::template::Template;
use serde_json::{Map, Value, json};

use crate::keys::write_record;

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

pub(crate) fn map<T>(values: &BTreeMap<String, T>, write: impl Fn(&T) -> Value) -> Value {
    Value::Object(values.iter().map(|(name, value)| (name.clone(), write(value))).collect())
}

pub(crate) fn actions(on: &BTreeMap<RunEvent, Vec<Action>>) -> Value {
    let events = on.iter().map(|(event, actions)| (event.name().to_owned(), actions.iter().map(action).collect()));
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
    keys.unless(schedule.stop.is_none(), "stop", || match &schedule.stop {
        Some(StopSchedule::After(span)) => json!({"after": span}),
        Some(StopSchedule::At(time)) => json!({"at": time.to_string()}),
        None => Value::Null,
    });
    if let Value::Object(map) = &mut value {
        map.extend(keys.map);
    }
    value
}

pub(crate) fn program(program: &Program) -> Value {
    match program {
        Program::Shell(command) => template(command),
        Program::Exec(words) => words.iter().map(template).collect(),
        Program::Http(request) => json!({"http": http(request)}),
        Program::Remote(remote) => json!({"remote": self::remote(remote)}),
        Program::Task(task) => json!({"task": self::task(task)}),
        Program::Noop { duration } => json!({"noop": duration}),
        Program::Plugin { command, settings } => {
            json!({"plugin": {"command": command, "settings": map(settings, template)}})
        }
    }
}

fn task(task: &TaskProgram) -> Value {
    match task {
        TaskProgram::Queue { queue, class, inports } => {
            json!({"queue": queue, "class": class, "inports": map(inports, template)})
        }
        TaskProgram::Write { task, port, value } => {
            json!({"task": template(task), "port": port, "value": template(value)})
        }
    }
}

fn http(request: &HttpProgram) -> Value {
    write_record(request, &HttpProgram::new(request.url.clone()))
}

fn remote(remote: &RemoteProgram) -> Value {
    let mut keys = MapBuilder::default();
    keys.put("start", http(&remote.start));
    keys.put("poll", http(&remote.poll));
    keys.unless(remote.every == RemoteProgram::EVERY_DEFAULT, "every", || json!(remote.every));
    keys.put("success", json!(remote.success));
    keys.put("failure", json!(remote.failure));
    keys.unless(remote.cancel.is_none(), "cancel", || json!(remote.cancel.as_ref().map(http)));
    keys.into_value()
}

pub(crate) fn condition(condition: &Condition) -> Value {
    let mut keys = MapBuilder::default();
    let (key, value) = requirement(&condition.requires);
    keys.put(key, value);
    keys.unless(condition.timeout.is_none(), "timeout", || json!(condition.timeout));
    keys.unless(condition.poll == Condition::POLL_DEFAULT, "poll", || json!(condition.poll));
    keys.into_value()
}

fn requirement(requirement: &Requirement) -> (&'static str, Value) {
    let mut keys = MapBuilder::default();
    match requirement {
        Requirement::After { job, args, states, within, must_exist } => {
            keys.put("job", template(job));
            keys.unless(args.is_empty(), "args", || map(args, template));
            keys.unless(*states == [State::Success], "states", || json!(states));
            keys.unless(within.is_none(), "within", || json!(within));
            keys.unless(!must_exist, "must_exist", || json!(true));
            ("after", keys.into_value())
        }
        Requirement::MaxRunning { count, same_args: false, pool: None } => ("max_running", json!(count)),
        Requirement::MaxRunning { count, same_args, pool } => {
            keys.put("count", json!(count));
            keys.unless(!same_args, "same_args", || json!(true));
            keys.unless(pool.is_none(), "pool", || json!(pool));
            ("max_running", keys.into_value())
        }
        Requirement::SkipDuplicate { states } if *states == Requirement::DUPLICATE_STATES_DEFAULT => {
            ("skip_duplicate", json!(true))
        }
        Requirement::SkipDuplicate { states } => ("skip_duplicate", json!({"states": states})),
        Requirement::Probe(Probe::File(path)) => ("file", template(path)),
        Requirement::Probe(Probe::Http(request)) => ("http", http(request)),
        Requirement::Probe(Probe::Command(command)) => ("command", template(command)),
        Requirement::Window { from, until, zone } => {
            keys.put("from", json!(from.to_string()));
            keys.put("until", json!(until.to_string()));
            keys.unless(zone.is_none(), "timezone", || json!(zone));
            ("window", keys.into_value())
        }
        Requirement::All(conditions) => ("all", conditions.iter().map(condition).collect()),
        Requirement::Any(conditions) => ("any", conditions.iter().map(condition).collect()),
        Requirement::Not(inner) => ("not", condition(inner)),
    }
}

fn action(action: &Action) -> Value {
    let mut keys = MapBuilder::default();
    match action {
        Action::Run { job, args } => {
            keys.put("job", template(job));
            keys.unless(args.is_empty(), "args", || map(args, template));
            json!({"run": keys.into_value()})
        }
        Action::Webhook(target) => json!({"webhook": webhook(target)}),
        Action::Email { to, subject, body } => {
            keys.put("to", json!(to));
            keys.unless(subject.is_none(), "subject", || json!(subject.as_ref().map(template)));
            keys.unless(body.is_none(), "body", || json!(body.as_ref().map(template)));
            json!({"email": keys.into_value()})
        }
        Action::Command(command) => json!({"command": template(command)}),
        Action::Publish { channel, message } => {
            keys.put("channel", template(channel));
            keys.unless(message.is_none(), "message", || json!(message.as_ref().map(template)));
            json!({"publish": keys.into_value()})
        }
    }
}

fn webhook(target: &HttpTarget) -> Value {
    write_record(target, &HttpTarget::new(target.url.clone()))
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
        OverlapPolicy::Queue { limit } => json!({"queue": {"limit": limit}}),
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

pub(crate) fn nodes(nodes: &NodeSelector) -> Value {
    match nodes {
        NodeSelector::Any => json!([]),
        NodeSelector::Labels(labels) => json!(labels),
        NodeSelector::Each(labels) if labels.is_empty() => json!("each"),
        NodeSelector::Each(labels) => json!({"each": labels}),
    }
}

pub(crate) fn trigger(trigger: &Trigger) -> Value {
    write_record(trigger, &Trigger::default())
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
