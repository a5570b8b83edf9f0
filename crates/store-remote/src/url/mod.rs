//! Parts of store URLs: `scheme://user:password@host:port,host:port/path?name=value&…`. Each store decides which schemes,
//! paths and parameters exist. Errors never quote anything that could be a password, and passwords are never printed.

mod credentials;
mod params;
mod parts;
mod servers;
mod values;

use cronhold_core::percent;
use cronhold_schedule::TextError;

pub use credentials::UrlCredentials;
pub use params::{PrintedParams, UrlParams, unknown_param};
pub use parts::UrlParts;
pub use servers::{ServerAddress, read_servers};
pub use values::{as_span, check_timeout, read_count, read_flag, read_span};

/// Printed instead of a password.
pub const MASK: &str = "***";

/// An error without a position, because a URL is shown with its passwords masked.
pub fn invalid_url(message: impl Into<String>) -> TextError {
    TextError::new(0..0, message)
}

/// Decodes the `%XX` escapes of a part of a URL.
pub fn unescape(text: &str) -> Result<String, TextError> {
    percent::decode(text).ok_or_else(|| {
        invalid_url("a `%` is not followed by two hexadecimal digits, or the text is not UTF-8")
            .hint("write `%` as %25")
    })
}
