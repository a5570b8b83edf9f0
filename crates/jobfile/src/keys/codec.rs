//! Codecs: how the value of a key is read and written, for every kind of value that is a field of a type. Anything
//! longer than one line is a function in `read` or `write`.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::job::{
    Action, Batching, CatchUpPolicy, CatchUpRule, Condition, EnvValue, JobSchedule, LockPolicy, NodeSelector, OnLost,
    OverlapPolicy, Param, Program, ResourceLimits, Retain, Retry, RetryOn, RunEvent, StopPolicy, TemplateScope,
    Trigger,
};
use cronhold_core::signal::Signal;
use cronhold_core::template::Template;
use cronhold_schedule::Span;
use serde_json::json;

use super::record::Codec;
use super::schedule::WHEN;
use super::work::{ACTION, CONDITION, HEADERS as HEADER_NAMES, METHOD as METHOD_NAME, PROGRAM, STATUS, URL as ANY_URL};
use super::{CHANNEL as ANY_CHANNEL, IDENTIFIER, ValueShape, job};
use crate::size;
use crate::write;

/// Smallest memory limit in bytes. No program starts with less, so a smaller number is a forgotten unit.
pub(crate) const MEMORY_LEAST: u64 = 1 << 20;
/// Smallest CPU limit that kernels support, in processors.
pub(crate) const CPU_LEAST: f64 = 0.01;
/// Transitions that actions can wait for: every state, and `finished` for any of the last four.
pub(super) const EVENTS: &str =
    "^(finished|scheduled|waiting|starting|running|stopping|success|failure|error|skipped)$";

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

pub(super) const PARAMS: Codec<BTreeMap<String, Param>> = Codec {
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
    shape: ValueShape::Either(&[ValueShape::Text, ValueShape::Some(&ValueShape::Template), ValueShape::Map(&PROGRAM)]),
    read: |reader, item| reader.program(item),
    write: write::program,
};

pub(super) const CONDITIONS: Codec<Vec<Condition>> = Codec {
    shape: ValueShape::List(&ValueShape::Map(&CONDITION)),
    read: |reader, item| {
        let nodes = reader.list(item, "[{max_running: 1}]")?;
        Some(nodes.iter().filter_map(|node| reader.condition(item.item(node))).collect())
    },
    write: |conditions| conditions.iter().map(write::condition).collect(),
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
    read: |reader, item| reader.catch_up(item),
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

pub(super) const ENV: Codec<BTreeMap<String, EnvValue>> = Codec {
    shape: ValueShape::Names {
        regex: IDENTIFIER,
        value: &ValueShape::Either(&[ValueShape::Template, ValueShape::Map(&job::ENV_SOURCE)]),
    },
    read: |reader, item| Some(reader.env(item)),
    write: |env| write::map(env, write::env_value),
};

pub(super) const UMASK: Codec<u32> = Codec {
    shape: ValueShape::Either(&[
        ValueShape::Pattern { regex: "^(0o)?[0-7]{1,4}$", noun: "a mask in octal digits" },
        ValueShape::Whole { least: 0, most: 0o777 },
    ]),
    read: |reader, item| reader.umask(item),
    write: |mask| json!(format!("{mask:03o}")),
};

pub(super) const LIMITS: Codec<Box<ResourceLimits>> = Codec {
    shape: ValueShape::Map(&job::LIMITS),
    read: |reader, item| {
        reader.record(item, ResourceLimits::default()).filter(|limits| !limits.is_empty()).map(Box::new)
    },
    write: |limits| super::write_record(&**limits, &ResourceLimits::default()),
};

pub(super) const MEMORY: Codec<u64> = Codec {
    shape: ValueShape::Size { least: MEMORY_LEAST },
    read: |reader, item| reader.size(item, MEMORY_LEAST),
    write: |bytes| json!(size::print(*bytes)),
};

/// A size that may be 0.
pub(super) const SIZE: Codec<u64> = Codec {
    shape: ValueShape::Size { least: 0 },
    read: |reader, item| reader.size(item, 0),
    write: |bytes| json!(size::print(*bytes)),
};

/// Processors, in thousandths.
pub(super) const PROCESSORS: Codec<u64> = Codec {
    shape: ValueShape::Number { least: CPU_LEAST },
    read: |reader, item| reader.processors(item),
    write: |thousandths| json!(*thousandths as f64 / 1000.0),
};

pub(super) const PROCESSOR_TIME: Codec<Span> =
    Codec { shape: ValueShape::Span, read: |reader, item| reader.processor_time(item), write: |span| json!(span) };

pub(super) const NODES: Codec<NodeSelector> = Codec {
    shape: ValueShape::Either(&[
        ValueShape::Word(&["each"]),
        ValueShape::List(&ValueShape::Text),
        ValueShape::Map(&job::EACH),
    ]),
    read: |reader, item| reader.nodes(item),
    write: write::nodes,
};

pub(super) const SUCCESS_CODES: Codec<Vec<u8>> = Codec {
    shape: ValueShape::Some(&ValueShape::Whole { least: 0, most: 255 }),
    read: |reader, item| {
        let nodes = reader.some(item, "[0, 3]")?;
        let codes = nodes.iter().filter_map(|node| reader.whole(item.item(node), 0, 255));
        // A set: order and repeats of exit codes have no meaning.
        let codes: BTreeSet<u8> = codes.filter_map(|code| u8::try_from(code).ok()).collect();
        Some(codes.into_iter().collect())
    },
    write: |codes| json!(codes),
};

pub(super) const ACTIONS: Codec<BTreeMap<RunEvent, Vec<Action>>> = Codec {
    shape: ValueShape::Names { regex: EVENTS, value: &ValueShape::List(&ValueShape::Map(&ACTION)) },
    read: |reader, item| Some(reader.actions(item)),
    write: write::actions,
};

pub(super) const TRIGGERS: Codec<Vec<Trigger>> = Codec {
    shape: ValueShape::List(&ValueShape::Either(&[ANY_CHANNEL, ValueShape::Map(&job::TRIGGER)])),
    read: |reader, item| {
        let nodes = reader.list(item, "[{channel: /prices/ready}]")?;
        Some(nodes.iter().filter_map(|node| reader.trigger(item.item(node))).collect())
    },
    write: |triggers| triggers.iter().map(write::trigger).collect(),
};

pub(super) const CHANNEL: Codec<String> = Codec {
    shape: ANY_CHANNEL,
    read: |reader, item| reader.channel(item).map(str::to_owned),
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

pub(super) const URL: Codec<Template> =
    Codec { shape: ANY_URL, read: |reader, item| reader.url(item), write: write::template };

pub(super) const METHOD: Codec<String> = Codec {
    shape: METHOD_NAME,
    read: |reader, item| reader.method(item).map(str::to_owned),
    write: |method| json!(method),
};

pub(super) const HEADERS: Codec<BTreeMap<String, Template>> = Codec {
    shape: HEADER_NAMES,
    read: |reader, item| Some(reader.headers(item)),
    write: |headers| write::map(headers, write::template),
};

/// Status codes as inclusive ranges.
pub(super) const STATUSES: Codec<Vec<(u16, u16)>> = Codec {
    shape: ValueShape::Either(&[STATUS, ValueShape::Some(&STATUS)]),
    read: |reader, item| reader.statuses(item),
    write: |ranges| ranges.iter().map(|(first, last)| format!("{first}-{last}")).collect(),
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
