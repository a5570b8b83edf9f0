//! Codecs: how the value of a key is read and written, for every kind of value that is a field of a type. Anything
//! longer than one line is a function in `read` or `write`.

mod process;
mod request;

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::NameMap;
use cronhold_core::job::{
    ActionFilter, ActionRule, ArgPattern, Batching, CatchUpPolicy, CatchUpRule, Condition, JobSchedule, LockPolicy,
    OnLost, OutcomeChange, OverlapPolicy, Param, ParamType, Program, Requirement, Retain, Retry, RetryOn, RunEvent,
    StopPolicy, TaskProgram, TemplateScope, TimeoutOutcome, Trigger,
};
use cronhold_core::record::PoolName;
use cronhold_core::run::State;
use cronhold_core::signal::Signal;
use cronhold_core::task::Channel;
use cronhold_core::task::limits::PORT_CHANNELS_MAX;
use cronhold_core::template::Template;
use cronhold_schedule::{CalendarExpr, Span, TimeOfDay};
use serde_json::{Value as Json, json};

use super::record::Codec;
use super::schedule::WHEN;
use super::{CHANNEL as ANY_CHANNEL, IDENTIFIER, ValueShape, job, work};
use crate::read::names;
use crate::write;

pub(crate) use process::{CPU_LEAST, IO_IDLE};
pub(super) use process::{
    ENV, IO_PRIORITY, LIMITS, MEMORY, NICE, NODES, PROCESSOR_TIME, PROCESSORS, SECRET, SIZE, STDERR, STDIN,
    SUCCESS_CODES, UMASK,
};
pub(crate) use request::METHOD_MAX;
pub use request::METHODS;
pub(super) use request::{
    BODY_PATTERN, HEADER_VALUES, HEADERS, METHOD, REDIRECTS, REMOTE_REQUEST, REQUEST, STATUSES, URL, VERDICT, WEBHOOK,
};

/// Events that can have actions: every state, `finished` for any of the last four, and what happens to a run or an
/// occurrence otherwise.
pub(super) const EVENTS: &str =
    "^(finished|scheduled|waiting|starting|running|stopping|success|failure|error|skipped|late|missed)$";

/// Example of a list of conditions, for messages.
const CONDITION_EXAMPLE: &str = "[{max_running: 1}]";
const MOST: i64 = u32::MAX as i64;
pub(super) const FROM_ONE: ValueShape = ValueShape::Whole { least: 1, most: MOST };

pub(super) const TEXT: Codec<String> = Codec {
    shape: ValueShape::Text,
    read: |reader, item| reader.text(item).map(str::to_owned),
    write: |text| json!(text),
};

/// A text, number or boolean, as it is written.
pub(super) const ANY_TEXT: Codec<String> = Codec {
    shape: ValueShape::Value,
    read: |reader, item| reader.value(item).map(str::to_owned),
    write: |text| json!(text),
};

pub(super) const LABELS: Codec<Vec<String>> = Codec {
    shape: ValueShape::List(&ValueShape::Text),
    read: |reader, item| reader.texts(item, "[eod]"),
    write: |labels| json!(labels),
};

pub(super) const CHOICES: Codec<Vec<String>> = Codec {
    shape: ValueShape::Some(&ValueShape::Value),
    read: |reader, item| {
        let nodes = reader.some(item, "[us, eu]")?;
        Some(nodes.iter().filter_map(|node| reader.value(item.item(node)).map(str::to_owned)).collect())
    },
    write: |choices| json!(choices),
};

pub(super) const PARAM_TYPE: Codec<ParamType> = Codec {
    shape: ValueShape::Word(ParamType::NAMES),
    read: |reader, item| {
        let word = reader.word(item, ParamType::NAMES)?;
        ParamType::ALL.into_iter().find(|kind| kind.name() == word)
    },
    write: |kind| json!(kind.name()),
};

pub(super) const ARG_PATTERN: Codec<ArgPattern> = Codec {
    shape: ValueShape::Text,
    read: |reader, item| {
        let text = reader.text(item)?;
        reader.parsed(item, ArgPattern::parse(text))
    },
    write: |pattern| json!(pattern.as_str()),
};

pub(super) const BOOL: Codec<bool> =
    Codec { shape: ValueShape::Bool, read: |reader, item| reader.bool(item), write: |value| json!(value) };

/// An integer, at least 0.
pub(super) const COUNT: Codec<u32> = Codec {
    shape: ValueShape::Whole { least: 0, most: MOST },
    read: |reader, item| reader.count(item, 0),
    write: |count| json!(count),
};

/// An integer, at least 1.
pub(super) const POSITIVE: Codec<u32> =
    Codec { shape: FROM_ONE, read: |reader, item| reader.count(item, 1), write: |count| json!(count) };

/// The length of a queue.
pub(super) const QUEUE_LIMIT: Codec<u32> =
    Codec { shape: FROM_ONE, read: |reader, item| reader.queue_limit(item), write: |count| json!(count) };

/// A 64-bit integer, at least 1.
pub(super) const POSITIVE_WIDE: Codec<u64> =
    Codec { shape: FROM_ONE, read: |reader, item| reader.count(item, 1).map(u64::from), write: |count| json!(count) };

pub(super) const SPAN: Codec<Span> =
    Codec { shape: ValueShape::Span, read: |reader, item| reader.span(item), write: |span| json!(span) };

/// A span that is not zero.
pub(super) const SOME_SPAN: Codec<Span> =
    Codec { shape: ValueShape::Span, read: |reader, item| reader.some_span(item), write: |span| json!(span) };

pub(super) const TEMPLATE: Codec<Template> =
    Codec { shape: ValueShape::Template, read: |reader, item| reader.template(item), write: write::template };

/// A template that is not an empty text.
pub(super) const TEMPLATE_TEXT: Codec<Template> =
    Codec { shape: ValueShape::Template, read: |reader, item| reader.template_text(item), write: write::template };

pub(super) const PARAMS: Codec<NameMap<Param>> = Codec {
    shape: ValueShape::Either(&[
        ValueShape::Names {
            regex: IDENTIFIER,
            value: &ValueShape::Either(&[ValueShape::Null, ValueShape::Map(&job::PARAM)]),
        },
        ValueShape::List(&ValueShape::Pattern { regex: IDENTIFIER, noun: "a name" }),
    ]),
    read: |reader, item| Some(reader.params(item)),
    write: |params| write::map(params, write::param),
};

pub(super) const SCHEDULES: Codec<Vec<JobSchedule>> = Codec {
    shape: WHEN,
    read: |reader, item| Some(reader.schedules(item)),
    write: |schedules| schedules.iter().map(write::schedule).collect(),
};

pub(super) const PROGRAM_VALUE: Codec<Program> = Codec {
    shape: ValueShape::Either(&[
        ValueShape::Text,
        ValueShape::Some(&ValueShape::Template),
        ValueShape::Map(&work::PROGRAM),
    ]),
    read: |reader, item| reader.program(item),
    write: write::program,
};

pub(super) const CONDITIONS: Codec<Vec<Condition>> = Codec {
    shape: ValueShape::List(&ValueShape::Map(&work::CONDITION)),
    read: |reader, item| {
        let nodes = reader.list(item, CONDITION_EXAMPLE)?;
        Some(nodes.iter().filter_map(|node| (work::CONDITION_MAP.read)(reader, item.item(node))).collect())
    },
    write: |conditions| conditions.iter().map(work::CONDITION_MAP.write).collect(),
};

/// Conditions of which at least one is given. Nesting is bounded by the depth of the file.
pub(super) static CONDITION_GROUP: Codec<Vec<Condition>> = Codec {
    shape: ValueShape::Some(&ValueShape::Map(&work::CONDITION)),
    read: |reader, item| {
        let nodes = reader.some(item, CONDITION_EXAMPLE)?;
        reader.all_of(item, nodes, work::CONDITION_MAP.read)
    },
    write: |conditions| conditions.iter().map(work::CONDITION_MAP.write).collect(),
};

pub(super) const LOCK: Codec<LockPolicy> = Codec {
    shape: ValueShape::Either(&[ValueShape::Bool, ValueShape::Text]),
    read: |reader, item| reader.lock(item),
    write: write::lock,
};

pub(super) const OVERLAP: Codec<OverlapPolicy> = Codec {
    shape: ValueShape::Either(&[
        ValueShape::Word(&["allow", "skip", "queue", "replace"]),
        ValueShape::Map(&job::OVERLAP),
    ]),
    read: |reader, item| reader.overlap(item),
    write: |overlap| write::overlap(*overlap),
};

pub(super) const CATCH_UP: Codec<CatchUpRule> = Codec {
    shape: ValueShape::Either(&[ValueShape::Word(&["none", "last", "all"]), ValueShape::Map(&job::CATCH_UP)]),
    read: |reader, item| reader.record_or_first(item, CatchUpRule::default()),
    write: write::catch_up,
};

pub(super) const CATCH_UP_POLICY: Codec<CatchUpPolicy> = Codec {
    shape: ValueShape::Word(&["none", "last", "all"]),
    read: |reader, item| reader.catch_up_policy(item),
    write: |policy| json!(policy),
};

pub(super) const RETRY: Codec<Retry> = Codec {
    shape: ValueShape::Either(&[FROM_ONE, ValueShape::Map(&job::RETRY)]),
    read: |reader, item| reader.retry(item),
    write: |retry| super::write_record(retry, &Retry::default()),
};

pub(super) const FACTOR: Codec<f64> = Codec {
    shape: ValueShape::Number { least: 1.0 },
    read: |reader, item| reader.number(item, 1.0),
    write: |factor| json!(factor),
};

pub(super) const RETRY_ON: Codec<BTreeSet<RetryOn>> = Codec {
    shape: ValueShape::Some(&ValueShape::Word(&["failure", "error"])),
    read: |reader, item| {
        let nodes = reader.some(item, "[failure, error]")?;
        let words = nodes.iter().filter_map(|node| reader.word(item.item(node), &["failure", "error"]));
        Some(words.map(|word| if word == "error" { RetryOn::Error } else { RetryOn::Failure }).collect())
    },
    write: |outcomes| json!(outcomes),
};

pub(super) const STOP: Codec<StopPolicy> = Codec {
    shape: ValueShape::Map(&job::STOP),
    read: |reader, item| reader.record(item, StopPolicy::default()),
    write: |stop| super::write_record(stop, &StopPolicy::default()),
};

pub(super) const SIGNAL: Codec<Signal> =
    Codec { shape: ValueShape::Text, read: |reader, item| reader.signal(item), write: |signal| json!(signal) };

pub(super) const ACTIONS: Codec<BTreeMap<RunEvent, Vec<ActionRule>>> = Codec {
    shape: ValueShape::Names { regex: EVENTS, value: &ValueShape::List(&ValueShape::Map(&work::ACTION)) },
    read: |reader, item| Some(reader.actions(item)),
    write: write::actions,
};

/// The filter of an action, which has at least one key.
pub(super) const ACTION_FILTER: Codec<Box<ActionFilter>> = Codec {
    shape: ValueShape::Map(&work::ACTION_FILTER),
    read: |reader, item| reader.action_filter(item).map(Box::new),
    write: |filter| super::write_record(&**filter, &ActionFilter::default()),
};

pub(super) const OUTCOME_CHANGE: Codec<OutcomeChange> = Codec {
    shape: ValueShape::Word(&OutcomeChange::NAMES),
    read: |reader, item| {
        let word = reader.word(item, &OutcomeChange::NAMES)?;
        OutcomeChange::ALL.into_iter().find(|change| change.name() == word)
    },
    write: |change| json!(change.name()),
};

/// Args and the values that each may have: one, or a list.
pub(super) const ARG_VALUES: Codec<BTreeMap<String, Vec<String>>> = Codec {
    shape: ValueShape::Names {
        regex: IDENTIFIER,
        value: &ValueShape::Either(&[ValueShape::Value, ValueShape::Some(&ValueShape::Value)]),
    },
    read: |reader, item| Some(reader.arg_values(item)),
    write: |args| {
        let values = |values: &Vec<String>| match &values[..] {
            [value] => json!(value),
            values => json!(values),
        };
        write::map(args, values)
    },
};

pub(super) const TRIGGERS: Codec<Vec<Trigger>> = Codec {
    shape: ValueShape::List(&ValueShape::Either(&[ANY_CHANNEL, ValueShape::Map(&job::TRIGGER)])),
    read: |reader, item| {
        let nodes = reader.list(item, "[{channel: /prices/ready}]")?;
        if nodes.len() > PORT_CHANNELS_MAX {
            let message = format!("`triggers` has {} channels; at most {PORT_CHANNELS_MAX} are allowed", nodes.len());
            return reader.refuse(item, message, "name a channel above them");
        }
        let triggers = nodes.iter().filter_map(|node| reader.record_or_first(item.item(node), Trigger::default()));
        Some(triggers.collect())
    },
    write: |triggers| triggers.iter().map(|trigger| super::write_record(trigger, &Trigger::default())).collect(),
};

pub(super) const CHANNEL: Codec<String> = Codec {
    shape: ANY_CHANNEL,
    read: |reader, item| {
        let text = reader.channel(item)?;
        match Channel::parse(text) {
            Ok(_) => Some(text.to_owned()),
            Err(error) => reader.refuse(item, error.message, "write a path such as /prices/ready"),
        }
    },
    write: |channel| json!(channel),
};

pub(super) const TRIGGER_ARGS: Codec<BTreeMap<String, Template>> = Codec {
    shape: ValueShape::Names { regex: IDENTIFIER, value: &ValueShape::Template },
    read: |reader, item| {
        let args = reader.scoped(TemplateScope::Trigger, |reader| reader.arg_templates(item));
        reader.known_params(item);
        Some(args)
    },
    write: |args| write::map(args, write::template),
};

pub(super) const BATCHING: Codec<Batching> = Codec {
    shape: ValueShape::Either(&[ValueShape::Word(&["greedy", "newest"]), ValueShape::Map(&job::BATCHING)]),
    read: |reader, item| reader.batching(item),
    write: |batching| write::batching(*batching),
};

pub(super) const RETAIN: Codec<Retain> = Codec {
    shape: ValueShape::Map(&job::RETAIN),
    read: |reader, item| reader.record(item, Retain::default()),
    write: |retain| super::write_record(retain, &Retain::default()),
};

pub(super) const ON_LOST: Codec<OnLost> = Codec {
    shape: ValueShape::Word(&["error", "retry"]),
    read: |reader, item| {
        let word = reader.word(item, &["error", "retry"])?;
        Some(if word == "retry" { OnLost::Retry } else { OnLost::Error })
    },
    write: |on_lost| json!(on_lost),
};

/// A command line for a shell.
pub(super) const COMMAND_LINE: Codec<Template> = Codec { shape: ValueShape::Text, ..TEMPLATE_TEXT };

/// A program and its arguments.
pub(super) const EXEC: Codec<Vec<Template>> = Codec {
    shape: ValueShape::Some(&ValueShape::Template),
    read: |reader, item| reader.exec(item),
    write: |words| words.iter().map(write::template).collect(),
};

/// A new task, or a value for a task if the map has a key of that.
pub(super) const TASK: Codec<TaskProgram> = Codec {
    shape: ValueShape::Either(&[ValueShape::Map(&work::TASK_QUEUE), ValueShape::Map(&work::TASK_FEED)]),
    read: |reader, item| {
        if item.node.get("write").is_none() {
            return (work::TASK_QUEUE_MAP.read)(reader, item);
        }
        let fields = reader.fields(item, &work::TASK_FEED)?;
        (work::TASK_WRITE_MAP.read)(reader, fields.get("write")?)
    },
    write: |task| match task {
        TaskProgram::Queue { .. } => (work::TASK_QUEUE_MAP.write)(task),
        TaskProgram::Write { .. } => json!({ "write": (work::TASK_WRITE_MAP.write)(task) }),
    },
};

pub(super) const TASK_ARGS: Codec<Vec<Template>> = Codec {
    shape: ValueShape::List(&ValueShape::Template),
    read: |reader, item| {
        let nodes = reader.list(item, "[7, \"{{ region }}\"]")?;
        reader.all_of(item, nodes, |reader, item| reader.template(item))
    },
    write: |args| args.iter().map(write::template).collect(),
};

pub(super) const INPORTS: Codec<BTreeMap<String, Template>> = Codec {
    shape: ValueShape::Names { regex: "", value: &ValueShape::Template },
    read: |reader, item| Some(reader.templates(item, names::port, "{in: 1}")),
    write: |inports| write::map(inports, write::template),
};

/// `true`, nothing, a span or a map.
pub(super) const NOOP: Codec<Program> = Codec {
    shape: ValueShape::Either(&[ValueShape::True, ValueShape::Null, ValueShape::Span, ValueShape::Map(&work::NOOP)]),
    read: |reader, item| reader.noop(item),
    write: |program| write::first_if_alone(&work::NOOP, (work::NOOP_MAP.write)(program)),
};

/// Settings of a plug-in.
pub(super) const SETTINGS: Codec<BTreeMap<String, Template>> = Codec {
    shape: ValueShape::Names { regex: IDENTIFIER, value: &ValueShape::Template },
    read: |reader, item| Some(reader.templates(item, names::setting, "{size: 3}")),
    write: |settings| write::map(settings, write::template),
};

pub(super) const JOB_ID: Codec<Template> =
    Codec { shape: ValueShape::Template, read: |reader, item| reader.job_id(item), write: write::template };

/// Args of a run that a condition refers to or an action creates.
pub(super) const ARG_TEMPLATES: Codec<BTreeMap<String, Template>> = Codec {
    shape: ValueShape::Names { regex: IDENTIFIER, value: &ValueShape::Template },
    read: |reader, item| Some(reader.arg_templates(item)),
    write: |args| write::map(args, write::template),
};

pub(super) const STATES: Codec<Vec<State>> = Codec {
    shape: ValueShape::Some(&ValueShape::Word(&State::NAMES)),
    read: |reader, item| {
        let nodes = reader.some(item, "[success]")?;
        reader.all_of(item, nodes, |reader, item| State::parse(reader.word(item, &State::NAMES)?).ok())
    },
    write: |states| json!(states),
};

pub(super) const MAX_RUNNING: Codec<Requirement> = Codec {
    write: |requirement| write::first_if_alone(&work::MAX_RUNNING, (work::MAX_RUNNING_MAP.write)(requirement)),
    ..work::MAX_RUNNING_MAP
};

pub(super) const ON_TIMEOUT: Codec<TimeoutOutcome> = Codec {
    shape: ValueShape::Word(&["error", "skip"]),
    read: |reader, item| {
        let word = reader.word(item, &["error", "skip"])?;
        Some(if word == "skip" { TimeoutOutcome::Skip } else { TimeoutOutcome::Error })
    },
    write: |outcome| json!(if *outcome == TimeoutOutcome::Skip { "skip" } else { "error" }),
};

pub(super) const CALENDAR: Codec<CalendarExpr> = Codec {
    shape: ValueShape::Text,
    read: |reader, item| reader.calendar(item),
    write: |days| json!(days.to_string()),
};

pub(super) const POOL: Codec<PoolName> =
    Codec { shape: ValueShape::Text, read: |reader, item| reader.pool(item), write: |pool| json!(pool.as_str()) };

/// `true` or a map.
pub(super) const SKIP_DUPLICATE: Codec<Requirement> = Codec {
    shape: ValueShape::Either(&[ValueShape::True, ValueShape::Map(&work::SKIP_DUPLICATE)]),
    read: |reader, item| reader.skip_duplicate(item),
    write: |requirement| match (work::SKIP_DUPLICATE_MAP.write)(requirement) {
        Json::Object(map) if map.is_empty() => json!(true),
        map => map,
    },
};

pub(super) const WINDOW: Codec<Requirement> = Codec { read: |reader, item| reader.window(item), ..work::WINDOW_MAP };

pub(super) const TIME: Codec<TimeOfDay> =
    Codec { shape: ValueShape::Time, read: |reader, item| reader.time(item), write: |time| json!(time.to_string()) };

pub(super) const ZONE: Codec<String> =
    Codec { shape: ValueShape::Text, read: |reader, item| reader.zone(item), write: |zone| json!(zone) };

const ADDRESS: ValueShape =
    ValueShape::Pattern { regex: "^[^@\\s]+@[^@\\s]+$", noun: "an address such as `ops@example.org`" };

/// One address or a list of them.
pub(super) const ADDRESSES: Codec<Vec<String>> = Codec {
    shape: ValueShape::Either(&[ADDRESS, ValueShape::Some(&ADDRESS)]),
    read: |reader, item| {
        let nodes = reader.one_or_some(item, "[ops@example.org]")?;
        reader.all_of(item, nodes, |reader, item| reader.address(item))
    },
    write: |addresses| json!(addresses),
};

/// A channel that may hold expressions.
pub(super) const CHANNEL_TEMPLATE: Codec<Template> = Codec {
    shape: ANY_CHANNEL,
    read: |reader, item| reader.channel(item).and_then(|_| reader.template_text(item)),
    write: write::template,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_a_key_of_on() {
        let listed = EVENTS.trim_start_matches("^(").trim_end_matches(")$").split('|');
        assert_eq!(listed.collect::<BTreeSet<_>>(), RunEvent::names().collect());
    }
}
