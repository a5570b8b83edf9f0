//! Codecs of HTTP requests and of what is expected of their responses.

use std::collections::BTreeMap;

use cronhold_core::job::{BodyPattern, HeaderValue, HttpProgram, HttpTarget, TemplateScope};
use cronhold_core::template::{Expression, Template};
use serde_json::json;

use crate::keys::record::Codec;
use crate::keys::{ValueShape, job, work};
use crate::read::names;
use crate::write;

const URL_START: ValueShape =
    ValueShape::Pattern { regex: r"^(https?://|\{\{)", noun: "a URL, which begins with `http://` or `https://`" };

pub(in crate::keys) const URL: Codec<Template> =
    Codec { shape: URL_START, read: |reader, item| reader.url(item), write: write::template };

/// A request: a URL or a map.
pub(in crate::keys) const REQUEST: Codec<HttpProgram> = Codec {
    shape: ValueShape::Either(&[URL_START, ValueShape::Map(&work::HTTP)]),
    read: |reader, item| reader.request(item),
    write: |request| crate::keys::write_record(request, &HttpProgram::new(request.url.clone())),
};

/// A request about a remote task.
pub(in crate::keys) const REMOTE_REQUEST: Codec<HttpProgram> = Codec {
    read: |reader, item| reader.scoped(TemplateScope::Remote, |reader| (REQUEST.read)(reader, item)),
    ..REQUEST
};

pub(in crate::keys) const WEBHOOK: Codec<HttpTarget> = Codec {
    shape: ValueShape::Either(&[URL_START, ValueShape::Map(&work::WEBHOOK)]),
    read: |reader, item| reader.record_or_first(item, HttpTarget::new(Template::literal(""))),
    write: |target| crate::keys::write_record(target, &HttpTarget::new(target.url.clone())),
};

/// Usual methods of requests.
pub const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// Letters of a method.
pub(crate) const METHOD_MAX: usize = 32;

pub(in crate::keys) const METHOD: Codec<String> = Codec {
    shape: ValueShape::Pattern { regex: "^[A-Za-z-]{1,32}$", noun: "a method such as GET, POST, PUT or DELETE" },
    read: |reader, item| reader.method(item),
    write: |method| json!(method),
};

pub(in crate::keys) const HEADERS: Codec<BTreeMap<String, Template>> = Codec {
    shape: ValueShape::Names { regex: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", value: &ValueShape::Template },
    read: |reader, item| Some(reader.templates(item, names::header, "{Accept: text/plain}")),
    write: |headers| write::map(headers, write::template),
};

/// Headers, whose values may be secrets.
pub(in crate::keys) const HEADER_VALUES: Codec<BTreeMap<String, HeaderValue>> = Codec {
    shape: ValueShape::Names {
        regex: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
        value: &ValueShape::Either(&[ValueShape::Template, ValueShape::Map(&job::HEADER_SOURCE)]),
    },
    read: |reader, item| Some(reader.header_values(item)),
    write: |headers| write::map(headers, write::header_value),
};

/// A regular expression.
pub(in crate::keys) const BODY_PATTERN: Codec<BodyPattern> = Codec {
    shape: ValueShape::Text,
    read: |reader, item| {
        let text = reader.text(item)?;
        reader.parsed(item, BodyPattern::parse(text))
    },
    write: |pattern| json!(pattern),
};

/// The number of redirects that are followed.
pub(in crate::keys) const REDIRECTS: Codec<u32> = Codec {
    shape: ValueShape::Whole { least: 0, most: HttpProgram::REDIRECTS_MAX as i64 },
    read: |reader, item| {
        let most = i64::from(HttpProgram::REDIRECTS_MAX);
        reader.whole(item, 0, most).and_then(|count| u32::try_from(count).ok())
    },
    write: |count| json!(count),
};

const STATUS: ValueShape = ValueShape::Either(&[
    ValueShape::Whole { least: 100, most: 599 },
    ValueShape::Pattern { regex: "^([1-5][0-9][0-9](-[1-5][0-9][0-9])?|[1-5]xx)$", noun: "`200`, `200-299` or `2xx`" },
]);

/// Status codes as inclusive ranges.
pub(in crate::keys) const STATUSES: Codec<Vec<(u16, u16)>> = Codec {
    shape: ValueShape::Either(&[STATUS, ValueShape::Some(&STATUS)]),
    read: |reader, item| {
        let nodes = reader.one_or_some(item, "[200, 404]")?;
        reader.all_of(item, nodes, |reader, item| reader.status(item))
    },
    write: |ranges| ranges.iter().map(|(first, last)| format!("{first}-{last}")).collect(),
};

/// Whether the response to a poll means success or failure.
pub(in crate::keys) const VERDICT: Codec<Expression> = Codec {
    shape: ValueShape::Expression,
    read: |reader, item| reader.scoped(TemplateScope::Answer, |reader| reader.expression(item)),
    write: |expression| json!(expression),
};
