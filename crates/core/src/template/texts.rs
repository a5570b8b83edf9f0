//! Functions for texts and lists inside templates: bounded versions of those Jinja functions whose result can be much
//! larger than their input, functions that quote a value for a command line or JSON, and the methods of texts that
//! Jinja users know.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

use super::environment::refused;

/// The largest result of a filter in bytes.
const FILTERED_MAX: usize = 1 << 20;

/// The most numbers that `range` returns.
pub(super) const RANGE_MAX: usize = 1_000;

/// `list | join(', ')`.
pub(super) fn join(value: &Value, between: Option<&str>) -> Result<String, Error> {
    let mut joined = String::new();
    for (index, item) in value.try_iter()?.enumerate() {
        if index > 0 {
            joined.push_str(between.unwrap_or(""));
        }
        joined.push_str(&item.to_string());
        bounded("join", joined.len())?;
    }
    Ok(joined)
}

/// `text | replace('a', 'b')`.
pub(super) fn replace(value: &Value, from: &str, to: &str) -> Result<String, Error> {
    let text = text_of("replace", value)?;
    let growth = to.len().saturating_sub(from.len()).saturating_mul(text.matches(from).count());
    bounded("replace", text.len().saturating_add(growth))?;
    Ok(text.replace(from, to))
}

/// `text | quote`: quotes any text as one word for a shell.
pub(super) fn quote(value: &Value) -> Result<String, Error> {
    let text = text_of("quote", value)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return Ok(text);
    }
    bounded("quote", text.len().saturating_mul(4))?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

/// `value | tojson`: a text, number, boolean or null as JSON.
pub(super) fn to_json(value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::None => Ok("null".to_owned()),
        ValueKind::Bool => Ok(value.is_true().to_string()),
        ValueKind::Number => Ok(value.to_string()),
        _ => serde_json::to_string(&text_of("tojson", value)?).map_err(|error| refused(error.to_string())),
    }
}

/// `range(from, to, step)`.
pub(super) fn range(lower: i64, upper: Option<i64>, step: Option<i64>) -> Result<Value, Error> {
    let (mut at, end) = upper.map_or((0, lower), |upper| (lower, upper));
    let step = step.unwrap_or(1);
    let mut numbers = Vec::new();
    while step > 0 && at < end || step < 0 && at > end {
        if numbers.len() == RANGE_MAX {
            return Err(refused(format!("`range` gives more than {RANGE_MAX} numbers")));
        }
        numbers.push(at);
        match at.checked_add(step) {
            Some(next) => at = next,
            None => break,
        }
    }
    if step == 0 { Err(refused("the step of `range` cannot be 0")) } else { Ok(Value::from(numbers)) }
}

/// Methods of texts.
pub(super) fn method(_: &mut State<'_, '_>, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    let Some(text) = value.as_str() else {
        return Err(Error::from(ErrorKind::UnknownMethod));
    };
    let words: Vec<&str> = args.iter().filter_map(Value::as_str).collect();
    if words.len() != args.len() {
        return Err(refused(format!("`{name}` of a text takes texts")));
    }
    match (name, words.as_slice()) {
        ("upper", []) => Ok(Value::from(text.to_uppercase())),
        ("lower", []) => Ok(Value::from(text.to_lowercase())),
        ("strip", []) => Ok(Value::from(text.trim())),
        ("startswith", [start]) => Ok(Value::from(text.starts_with(start))),
        ("endswith", [end]) => Ok(Value::from(text.ends_with(end))),
        ("replace", [from, to]) => replace(value, from, to).map(Value::from),
        ("split", []) => Ok(text.split_whitespace().map(Value::from).collect()),
        ("split", [at]) if !at.is_empty() => Ok(text.split(at).map(Value::from).collect()),
        _ => {
            let known = "upper(), lower(), strip(), startswith(x), endswith(x), replace(x, y) and split(x)";
            Err(Error::new(ErrorKind::UnknownMethod, format!("a text has no such method; it has {known}")))
        }
    }
}

fn text_of(filter: &str, value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::Map | ValueKind::Seq | ValueKind::Iterable | ValueKind::Bytes => {
            Err(refused(format!("`{filter}` takes a text, not a {}", value.kind())))
        }
        _ => Ok(value.to_string()),
    }
}

fn bounded(filter: &str, bytes: usize) -> Result<(), Error> {
    if bytes > FILTERED_MAX {
        return Err(refused(format!("`{filter}` gives more than {FILTERED_MAX} bytes")));
    }
    Ok(())
}
