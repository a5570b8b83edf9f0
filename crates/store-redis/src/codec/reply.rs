//! What scripts answer, taken apart. A script of ours that answers otherwise than it should is a mistake of ours, or
//! somebody else answers: both are said.

use cronhold_store::Fault;
use redis::Value;

/// A list.
pub(crate) fn list(value: Value) -> Result<Vec<Value>, Fault> {
    match value {
        Value::Array(values) => Ok(values),
        other => Err(strange("a list", &other)),
    }
}

/// A number.
pub(crate) fn number(value: &Value) -> Result<i64, Fault> {
    match value {
        Value::Int(number) => Ok(*number),
        other => Err(strange("a number", other)),
    }
}

/// A text of any bytes; none when it is not there.
pub(crate) fn bytes(value: Value) -> Result<Option<Vec<u8>>, Fault> {
    match value {
        Value::BulkString(bytes) => Ok(Some(bytes)),
        Value::Nil => Ok(None),
        other => Err(strange("a text", &other)),
    }
}

/// A text that is there.
pub(crate) fn text(value: Value) -> Result<String, Fault> {
    match value {
        Value::BulkString(bytes) => {
            String::from_utf8(bytes).map_err(|error| strange("a text", &Value::BulkString(error.into_bytes())))
        }
        other => Err(strange("a text", &other)),
    }
}

/// The fault of an answer that nobody expects.
pub(crate) fn strange(expected: &str, found: &Value) -> Fault {
    let found: String = format!("{found:?}").chars().take(200).collect();
    Fault::Broken(format!("Redis answered {found} where {expected} should be"))
}
