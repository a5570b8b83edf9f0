//! Values of parameters.

use std::time::Duration;

use cronhold_schedule::text::shortened;
use cronhold_schedule::{Span, TextError};

use super::invalid_url;

/// A reply takes a moment even on the same machine.
const TIMEOUT_MIN: Span = Span::from_millis(50);

/// A server that does not reply for this long is considered dead.
const TIMEOUT_MAX: Span = Span::from_secs(60);

/// Reads a span of time that is longer than 0.
pub fn read_span(name: &str, value: &str) -> Result<Duration, TextError> {
    let span = Span::parse(value).map_err(|error| invalid_url(format!("`{name}`: {error}")))?;
    if span.is_zero() {
        return Err(invalid_url(format!("`{name}` must be longer than 0")));
    }
    Ok(Duration::from_micros(span.micros()))
}

/// Reads a number from `min` to `max`.
pub fn read_count(name: &str, value: &str, min: u64, max: u64) -> Result<u64, TextError> {
    let number = value.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| invalid_url(format!("`{name}` is a number from {min} to {max}, not `{}`", shortened(value))))
}

/// Reads `true` or `false`.
pub fn read_flag(name: &str, value: &str) -> Result<bool, TextError> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(invalid_url(format!("`{name}` is `true` or `false`, not `{}`", shortened(other)))),
    }
}

/// Checks the parameter `timeout`: how long to wait for a reply of a server.
pub fn check_timeout(timeout: Duration) -> Result<(), TextError> {
    let timeout = as_span(timeout);
    if timeout < TIMEOUT_MIN || timeout > TIMEOUT_MAX {
        return Err(invalid_url(format!("`timeout` must be between {TIMEOUT_MIN} and {TIMEOUT_MAX}")));
    }
    Ok(())
}

/// A duration as the span of time that texts show.
pub fn as_span(duration: Duration) -> Span {
    Span::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_or_rejected_with_their_name() {
        assert_eq!(read_span("a", "1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(read_count("a", "0", 0, 9), Ok(0));
        assert_eq!((read_flag("a", "true"), read_flag("a", "false")), (Ok(true), Ok(false)));
        for (error, message) in [
            (read_span("a", "0s").map(drop), "`a` must be longer than 0"),
            (read_count("a", "10", 0, 9).map(drop), "`a` is a number from 0 to 9, not `10`"),
            (read_flag("a", "yes").map(drop), "`a` is `true` or `false`, not `yes`"),
            (check_timeout(Duration::from_millis(49)), "`timeout` must be between 50ms and 1m"),
            (check_timeout(Duration::from_secs(61)), "`timeout` must be between 50ms and 1m"),
        ] {
            assert_eq!(error.expect_err(message).to_string(), message);
        }
        assert_eq!(check_timeout(Duration::from_secs(60)), Ok(()));
    }
}
