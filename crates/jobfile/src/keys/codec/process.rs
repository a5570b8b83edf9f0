//! Codecs of what concerns the process of a program: environment, user, priorities and limits.

use std::collections::BTreeSet;

use cronhold_core::NameMap;
use cronhold_core::job::{
    EnvValue, IoPriority, NICE_MAX, NICE_MIN, NodeSelector, ResourceLimits, SecretSource, StderrPolicy, StdinSource,
};
use cronhold_schedule::Span;
use serde_json::json;

use crate::keys::record::Codec;
use crate::keys::{IDENTIFIER, ValueShape, job};
use crate::size;
use crate::write;

/// Smallest memory limit in bytes. No program starts with less, so a smaller number is a forgotten unit.
pub(crate) const MEMORY_LEAST: u64 = 1 << 20;
/// Smallest CPU limit that kernels support, in processors.
pub(crate) const CPU_LEAST: f64 = 0.01;
/// The word for the least urgent priority of the disk.
pub(crate) const IO_IDLE: &str = "idle";

pub(in crate::keys) const ENV: Codec<NameMap<EnvValue>> = Codec {
    shape: ValueShape::Names {
        regex: IDENTIFIER,
        value: &ValueShape::Either(&[ValueShape::Template, ValueShape::Map(&job::ENV_SOURCE)]),
    },
    read: |reader, item| Some(reader.env(item)),
    write: |env| write::map(env, write::env_value),
};

pub(in crate::keys) const SECRET: Codec<SecretSource> = Codec {
    shape: ValueShape::Map(&job::ENV_SOURCE),
    read: |reader, item| reader.secret(item),
    write: |source| json!(source),
};

pub(in crate::keys) const UMASK: Codec<u32> = Codec {
    shape: ValueShape::Either(&[
        ValueShape::Pattern { regex: "^(0o)?[0-7]{1,4}$", noun: "a mask in octal digits" },
        ValueShape::Whole { least: 0, most: 0o777 },
    ]),
    read: |reader, item| reader.umask(item),
    write: |mask| json!(format!("{mask:03o}")),
};

pub(in crate::keys) const STDIN: Codec<Box<StdinSource>> = Codec {
    shape: ValueShape::Either(&[ValueShape::Template, ValueShape::Map(&job::STDIN_FILE)]),
    read: |reader, item| reader.stdin(item).map(Box::new),
    write: |stdin| match &**stdin {
        StdinSource::Text(text) => write::template(text),
        StdinSource::File(path) => json!({"file": write::template(path)}),
    },
};

pub(in crate::keys) const STDERR: Codec<StderrPolicy> = Codec {
    shape: ValueShape::Word(&["mixed", "separate"]),
    read: |reader, item| {
        let word = reader.word(item, &["mixed", "separate"])?;
        Some(if word == "separate" { StderrPolicy::Separate } else { StderrPolicy::Mixed })
    },
    write: |stderr| json!(stderr),
};

pub(in crate::keys) const NICE: Codec<i8> = Codec {
    shape: ValueShape::Whole { least: NICE_MIN as i64, most: NICE_MAX as i64 },
    read: |reader, item| {
        let nice = reader.whole(item, NICE_MIN.into(), NICE_MAX.into())?;
        i8::try_from(nice).ok()
    },
    write: |nice| json!(nice),
};

pub(in crate::keys) const IO_PRIORITY: Codec<IoPriority> = Codec {
    shape: ValueShape::Either(&[
        ValueShape::Word(&[IO_IDLE]),
        ValueShape::Whole { least: 0, most: IoPriority::LEVEL_MAX as i64 },
    ]),
    read: |reader, item| reader.io_priority(item),
    write: |priority| match priority {
        IoPriority::Idle => json!(IO_IDLE),
        IoPriority::BestEffort(level) => json!(level),
    },
};

pub(in crate::keys) const LIMITS: Codec<Box<ResourceLimits>> = Codec {
    shape: ValueShape::Map(&job::LIMITS),
    read: |reader, item| {
        reader.record(item, ResourceLimits::default()).filter(|limits| !limits.is_empty()).map(Box::new)
    },
    write: |limits| crate::keys::write_record(&**limits, &ResourceLimits::default()),
};

pub(in crate::keys) const MEMORY: Codec<u64> = Codec {
    shape: ValueShape::Size { least: MEMORY_LEAST },
    read: |reader, item| reader.size(item, MEMORY_LEAST),
    write: |bytes| json!(size::print(*bytes)),
};

/// A size that may be 0.
pub(in crate::keys) const SIZE: Codec<u64> = Codec {
    shape: ValueShape::Size { least: 0 },
    read: |reader, item| reader.size(item, 0),
    write: |bytes| json!(size::print(*bytes)),
};

/// Processors, in thousandths.
pub(in crate::keys) const PROCESSORS: Codec<u64> = Codec {
    shape: ValueShape::Number { least: CPU_LEAST },
    read: |reader, item| reader.processors(item),
    write: |thousandths| json!(*thousandths as f64 / 1000.0),
};

pub(in crate::keys) const PROCESSOR_TIME: Codec<Span> =
    Codec { shape: ValueShape::Span, read: |reader, item| reader.processor_time(item), write: |span| json!(span) };

pub(in crate::keys) const NODES: Codec<NodeSelector> = Codec {
    shape: ValueShape::Either(&[
        ValueShape::Word(&["each"]),
        ValueShape::List(&ValueShape::Text),
        ValueShape::Map(&job::EACH),
    ]),
    read: |reader, item| reader.nodes(item),
    write: write::nodes,
};

pub(in crate::keys) const SUCCESS_CODES: Codec<Vec<u8>> = Codec {
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
