//! Where a daemon listens, and paths below it. Ids of jobs have slashes and names of runs have number signs; here they
//! become one segment each.

use std::fmt::{self, Write};

/// Where a daemon listens: what stands between `http://` and the first slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    authority: String,
    port: u16,
}

/// Why a text is no address of a daemon.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AddressError {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: &'static str,
}

/// What an address looks like.
const SHAPE: &str = "write it as http://HOST:PORT, such as http://127.0.0.1:2766";

impl Address {
    /// Reads an address such as `http://127.0.0.1:2766`.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let wrong = |why: &str, hint| AddressError { message: format!("`{}` {why}", short(text)), hint };
        if text.starts_with("https://") {
            let hint =
                "give http://HOST:PORT, and reach a far machine through a tunnel, such as ssh -L 2766:127.0.0.1:2766";
            return Err(wrong("cannot be asked: this version does not speak TLS", hint));
        }
        let rest = text.strip_prefix("http://").ok_or_else(|| wrong("does not begin with http://", SHAPE))?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.rsplit_once(':') {
            // The colons of an IPv6 address stand in brackets.
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong("has no number of a port at its end", SHAPE))?)
            }
            _ => (rest, crate::PORT),
        };
        let is_host = |sign: char| sign.is_ascii_alphanumeric() || ".-_".contains(sign);
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let known = match inner {
            Some(inner) => {
                !inner.is_empty() && inner.chars().all(|sign| sign.is_ascii_hexdigit() || ":.".contains(sign))
            }
            None => !host.is_empty() && host.chars().all(is_host),
        };
        if !known {
            return Err(wrong("does not name a host and a port only", SHAPE));
        }
        Ok(Self { authority: format!("{host}:{port}"), port })
    }

    /// Host and port, as the Host header has them.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// The host without brackets, to be looked up.
    pub(super) fn host(&self) -> &str {
        let host = self.authority.rsplit_once(':').map_or(self.authority.as_str(), |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// The port.
    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

/// A path with a query in the making.
#[derive(Debug, Clone)]
pub(super) struct Path {
    text: String,
    has_query: bool,
}

impl Path {
    /// A path that is written as it is.
    pub(super) fn new(start: &str) -> Self {
        Self { text: start.to_owned(), has_query: false }
    }

    /// One segment more, whatever signs it has.
    pub(super) fn segment(mut self, segment: &str) -> Self {
        self.text.push('/');
        encode(segment, &mut self.text);
        self
    }

    /// One parameter more.
    pub(super) fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.text.push_str(name);
        self.text.push('=');
        encode(&value.to_string(), &mut self.text);
        self
    }

    /// One parameter more, if there is one.
    pub(super) fn with_some(self, name: &str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

/// Everything but letters, digits and four signs is encoded, so that nothing has a meaning of its own.
fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(char::from(byte));
        } else {
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

fn short(text: &str) -> String {
    cronhold_schedule::text::shortened(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses() {
        for (text, expected) in [
            ("http://127.0.0.1:2766", "http://127.0.0.1:2766 127.0.0.1 2766"),
            ("http://127.0.0.1:80/", "http://127.0.0.1:80 127.0.0.1 80"),
            ("http://localhost", "http://localhost:2766 localhost 2766"),
            ("http://[::1]:99", "http://[::1]:99 ::1 99"),
            ("http://[::1]", "http://[::1]:2766 ::1 2766"),
            ("https://host:1", "`https://host:1` cannot be asked: this version does not speak TLS"),
            ("host:1", "`host:1` does not begin with http://"),
            ("http://host:one", "`http://host:one` has no number of a port at its end"),
            ("http://host:1/api", "`http://host:1/api` has no number of a port at its end"),
            ("http://me@host:1", "`http://me@host:1` does not name a host and a port only"),
            ("http://", "`http://` does not name a host and a port only"),
            ("http://[]:1", "`http://[]:1` does not name a host and a port only"),
        ] {
            let read = Address::parse(text);
            let shown =
                read.map_or_else(|error| error.to_string(), |read| format!("{read} {} {}", read.host(), read.port()));
            assert_eq!(shown, expected, "{text}");
        }
    }

    #[test]
    fn whatever_a_name_has_is_one_segment() {
        let path =
            Path::new("/api/v1").segment("jobs").segment("demo/a b#1?ä%").with("from", "2026-01-01T00:00:00+01:00");
        let expected = "/api/v1/jobs/demo%2Fa%20b%231%3F%C3%A4%25?from=2026-01-01T00%3A00%3A00%2B01%3A00";
        assert_eq!(path.with_some("x", None::<u8>).with_some("n", Some(2)).as_str(), format!("{expected}&n=2"));
    }
}
