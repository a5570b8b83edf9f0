//! A job in the keys of its file, as JSON, which is YAML too. What API and command line show, and
//! what a job that never was a file is stored as. Defaults are left out.

use std::collections::BTreeMap;

use cronhold_core::job::{
    Action, Batching, CatchUp, Condition, EnvValue, HttpProgram, HttpTarget, Job, Limits, Lock, Nodes, OnLost, Overlap,
    Param, Probe, Program, QUEUE_LIMIT_DEFAULT, RemoteProgram, Requirement, Retain, Retry, Schedule, StopPolicy,
    StopSchedule, TaskProgram, Trigger,
};
use cronhold_core::run::State;
use cronhold_core::template::Template;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::size;

/// The job as a map that `read_job` reads back into the same job.
pub fn write_job(job: &Job) -> Value {
    let default = Job::new(job.program.clone());
    let mut keys = Keys::default();
    keys.unless(job.description.is_empty(), "description", || json!(job.description));
    keys.unless(job.labels.is_empty(), "labels", || json!(job.labels));
    keys.unless(job.params.is_empty(), "params", || map(&job.params, param));
    keys.unless(job.schedules.is_empty(), "schedule", || job.schedules.iter().map(schedule).collect());
    keys.put("program", program(&job.program));
    keys.unless(job.conditions.is_empty(), "conditions", || job.conditions.iter().map(condition).collect());
    keys.unless(job.lock == default.lock, "lock", || lock(&job.lock));
    keys.unless(job.ttl == default.ttl, "ttl", || json!(job.ttl));
    keys.unless(job.overlap == default.overlap, "overlap", || overlap(job.overlap));
    keys.unless(job.catch_up == default.catch_up, "catch_up", || catch_up(job.catch_up));
    keys.unless(job.retry == default.retry, "retry", || retry(&job.retry));
    keys.unless(job.timeout.is_none(), "timeout", || json!(job.timeout));
    keys.unless(job.stop == default.stop, "stop", || stop(&job.stop));
    keys.unless(job.env.is_empty(), "env", || map(&job.env, env_value));
    keys.unless(job.cwd.is_none(), "cwd", || json!(job.cwd.as_ref().map(template)));
    keys.unless(job.shell.is_none(), "shell", || json!(job.shell));
    keys.unless(job.user.is_none(), "user", || json!(job.user));
    keys.unless(job.umask.is_none(), "umask", || json!(job.umask.map(|mask| format!("{mask:03o}"))));
    keys.unless(job.limits.is_none(), "limits", || json!(job.limits.as_deref().map(limits)));
    keys.unless(job.nodes == default.nodes, "nodes", || nodes(&job.nodes));
    keys.unless(job.success_codes == default.success_codes, "success_codes", || json!(job.success_codes));
    keys.unless(job.on.is_empty(), "on", || {
        let events = job.on.iter().map(|(event, actions)| (name(event), actions.iter().map(action).collect()));
        Value::Object(events.collect())
    });
    keys.unless(job.triggers.is_empty(), "triggers", || job.triggers.iter().map(trigger).collect());
    keys.unless(job.retain == default.retain, "retain", || retain(&job.retain));
    keys.unless(job.on_lost == OnLost::Error, "on_lost", || json!(job.on_lost));
    keys.unless(!job.paused, "paused", || json!(true));
    keys.into_value()
}

/// A map in the making.
#[derive(Default)]
struct Keys {
    map: Map<String, Value>,
}

impl Keys {
    fn put(&mut self, key: &str, value: Value) {
        self.map.insert(key.to_owned(), value);
    }

    /// A key whose value is only worth writing when it is not what holds without it.
    fn unless(&mut self, is_default: bool, key: &str, value: impl FnOnce() -> Value) {
        if !is_default {
            self.put(key, value());
        }
    }

    fn into_value(self) -> Value {
        Value::Object(self.map)
    }
}

fn map<T>(values: &BTreeMap<String, T>, write: impl Fn(&T) -> Value) -> Value {
    Value::Object(values.iter().map(|(name, value)| (name.clone(), write(value))).collect())
}

/// The text of something that serializes to one, such as a state.
fn name(value: &impl Serialize) -> String {
    match json!(value) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn template(template: &Template) -> Value {
    let text = template.text();
    // A text that only looks like a template has to be kept from being read as one.
    let is_live = Template::parse(text).map_or(true, |parsed| !parsed.is_literal());
    if template.is_literal() && is_live { json!(format!("{{% raw %}}{text}{{% endraw %}}")) } else { json!(text) }
}

fn param(param: &Param) -> Value {
    let mut keys = Keys::default();
    keys.unless(param.default.is_none(), "default", || json!(param.default));
    keys.unless(param.choices.is_empty(), "choices", || json!(param.choices));
    keys.unless(param.description.is_empty(), "description", || json!(param.description));
    keys.into_value()
}

fn schedule(schedule: &Schedule) -> Value {
    let mut value = json!(schedule.spec);
    let mut keys = Keys::default();
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

fn program(program: &Program) -> Value {
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
    let mut keys = Keys::default();
    keys.put("url", template(&request.url));
    keys.unless(request.method == "GET", "method", || json!(request.method));
    keys.unless(request.headers.is_empty(), "headers", || map(&request.headers, template));
    keys.unless(request.body.is_none(), "body", || json!(request.body.as_ref().map(template)));
    keys.unless(request.expect == [HttpProgram::EXPECT_DEFAULT], "expect", || {
        request.expect.iter().map(|(first, last)| format!("{first}-{last}")).collect()
    });
    keys.unless(request.timeout == HttpProgram::TIMEOUT_DEFAULT, "timeout", || json!(request.timeout));
    keys.into_value()
}

fn remote(remote: &RemoteProgram) -> Value {
    let mut keys = Keys::default();
    keys.put("start", http(&remote.start));
    keys.put("poll", http(&remote.poll));
    keys.unless(remote.every == RemoteProgram::EVERY_DEFAULT, "every", || json!(remote.every));
    keys.put("success", json!(remote.success));
    keys.put("failure", json!(remote.failure));
    keys.unless(remote.cancel.is_none(), "cancel", || json!(remote.cancel.as_ref().map(http)));
    keys.into_value()
}

fn condition(condition: &Condition) -> Value {
    let mut keys = Keys::default();
    let (key, value) = requirement(&condition.requires);
    keys.put(key, value);
    keys.unless(condition.timeout.is_none(), "timeout", || json!(condition.timeout));
    keys.unless(condition.poll == Condition::POLL_DEFAULT, "poll", || json!(condition.poll));
    keys.into_value()
}

fn requirement(requirement: &Requirement) -> (&'static str, Value) {
    let mut keys = Keys::default();
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
    let mut keys = Keys::default();
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
    let mut keys = Keys::default();
    keys.put("url", template(&target.url));
    keys.unless(target.method == "POST", "method", || json!(target.method));
    keys.unless(target.headers.is_empty(), "headers", || map(&target.headers, template));
    keys.unless(target.body.is_none(), "body", || json!(target.body.as_ref().map(template)));
    keys.into_value()
}

fn lock(lock: &Lock) -> Value {
    match lock {
        Lock::None => json!(false),
        Lock::Job => json!(true),
        Lock::Named(name) => json!(name),
    }
}

fn overlap(overlap: Overlap) -> Value {
    match overlap {
        Overlap::Allow => json!("allow"),
        Overlap::Skip => json!("skip"),
        Overlap::Queue { limit: QUEUE_LIMIT_DEFAULT } => json!("queue"),
        Overlap::Queue { limit } => json!({"queue": {"limit": limit}}),
        Overlap::Replace => json!("replace"),
    }
}

fn catch_up(catch_up: CatchUp) -> Value {
    let within_is_default = catch_up.within == CatchUp::default().within;
    if within_is_default { json!(catch_up.policy) } else { json!(catch_up) }
}

fn retry(retry: &Retry) -> Value {
    let default = Retry::default();
    let mut keys = Keys::default();
    keys.put("attempts", json!(retry.attempts));
    keys.unless(retry.backoff == default.backoff, "backoff", || json!(retry.backoff));
    keys.unless(retry.factor == default.factor, "factor", || json!(retry.factor));
    keys.unless(retry.most == default.most, "most", || json!(retry.most));
    keys.unless(retry.on == default.on, "on", || json!(retry.on));
    keys.into_value()
}

fn stop(stop: &StopPolicy) -> Value {
    let default = StopPolicy::default();
    let mut keys = Keys::default();
    keys.unless(stop.signal == default.signal, "signal", || json!(stop.signal));
    keys.unless(stop.grace == default.grace, "grace", || json!(stop.grace));
    keys.into_value()
}

fn env_value(value: &EnvValue) -> Value {
    match value {
        EnvValue::Text(text) => template(text),
        EnvValue::File(path) => json!({"file": path}),
        EnvValue::Env(name) => json!({"env": name}),
    }
}

fn limits(limits: &Limits) -> Value {
    let mut keys = Keys::default();
    let size = |bytes: Option<u64>| json!(bytes.map(size::print));
    keys.unless(limits.memory.is_none(), "memory", || size(limits.memory));
    keys.unless(limits.cpu.is_none(), "cpu", || json!(limits.cpu.map(|thousandths| thousandths as f64 / 1000.0)));
    keys.unless(limits.pids.is_none(), "pids", || json!(limits.pids));
    keys.unless(limits.files.is_none(), "files", || json!(limits.files));
    keys.unless(limits.cpu_time.is_none(), "cpu_time", || json!(limits.cpu_time));
    keys.unless(limits.core.is_none(), "core", || size(limits.core));
    keys.into_value()
}

fn nodes(nodes: &Nodes) -> Value {
    match nodes {
        Nodes::Any => json!([]),
        Nodes::Labels(labels) => json!(labels),
        Nodes::Each(labels) if labels.is_empty() => json!("each"),
        Nodes::Each(labels) => json!({"each": labels}),
    }
}

fn trigger(trigger: &Trigger) -> Value {
    let mut keys = Keys::default();
    keys.put("channel", json!(trigger.channel));
    keys.unless(trigger.args.is_empty(), "args", || map(&trigger.args, template));
    keys.unless(trigger.batching == Batching::default(), "batching", || batching(trigger.batching));
    keys.into_value()
}

fn batching(batching: Batching) -> Value {
    let mut keys = Keys::default();
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

fn retain(retain: &Retain) -> Value {
    let default = Retain::default();
    let mut keys = Keys::default();
    keys.unless(retain.success == default.success, "success", || json!(retain.success));
    keys.unless(retain.failure == default.failure, "failure", || json!(retain.failure));
    keys.unless(retain.error == default.error, "error", || json!(retain.error));
    keys.unless(retain.skipped == default.skipped, "skipped", || json!(retain.skipped));
    keys.unless(retain.output == default.output, "output", || json!(retain.output));
    keys.into_value()
}
