//! Converts replies of scripts. An unexpected reply is a bug, or the server is not a Redis server; the fault quotes it.

use cronhold_store::Fault;
use redis::Value;

pub(crate) fn list(value: Value) -> Result<Vec<Value>, Fault> {
    match value {
        Value::Array(values) => Ok(values),
        other => Err(unexpected("a list", &other)),
    }
}

pub(crate) fn number(value: &Value) -> Result<i64, Fault> {
    match value {
        Value::Int(number) => Ok(*number),
        other => Err(unexpected("a number", other)),
    }
}

/// A byte string; `None` for a null reply.
pub(crate) fn bytes(value: Value) -> Result<Option<Vec<u8>>, Fault> {
    match value {
        Value::BulkString(bytes) => Ok(Some(bytes)),
        Value::Nil => Ok(None),
        other => Err(unexpected("a text", &other)),
    }
}

/// A UTF-8 string.
pub(crate) fn text(value: Value) -> Result<String, Fault> {
    match value {
        Value::BulkString(bytes) => {
            String::from_utf8(bytes).map_err(|error| unexpected("a text", &Value::BulkString(error.into_bytes())))
        }
        other => Err(unexpected("a text", &other)),
    }
}

/// The fault for a reply of the wrong type or value.
pub(crate) fn unexpected(expected: &str, found: &Value) -> Fault {
    let found: String = format!("{found:?}").chars().take(200).collect();
    Fault::Permanent(format!("unexpected reply from Redis: {found} instead of {expected}"))
}
