//! The address of a daemon, and request paths. Job ids and run names become one percent-encoded segment each.

use std::fmt;

use cronhold_core::percent;

/// Host and port of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonAddress {
    authority: String,
    port: u16,
}

/// An invalid daemon URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AddressError {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: &'static str,
}

/// Hint for an invalid URL.
const SHAPE: &str = "write it as http://HOST:PORT, such as http://127.0.0.1:2766";

impl DaemonAddress {
    /// Parses a URL such as `http://127.0.0.1:2766`.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let wrong = |why: &str, hint| AddressError { message: format!("`{}` {why}", short(text)), hint };
        if text.starts_with("https://") {
            let hint = "use http://HOST:PORT, and a tunnel to another machine, such as ssh -L 2766:127.0.0.1:2766";
            return Err(wrong("cannot be used: this version does not support TLS", hint));
        }
        let rest = text.strip_prefix("http://").ok_or_else(|| wrong("does not begin with http://", SHAPE))?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.rsplit_once(':') {
            // The colons of an IPv6 address stand in brackets.
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong("does not end with a port number", SHAPE))?)
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
            return Err(wrong("is not just a host and a port", SHAPE));
        }
        Ok(Self { authority: format!("{host}:{port}"), port })
    }

    /// Value of the Host header.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// The host without brackets, for name resolution.
    pub(super) fn host(&self) -> &str {
        let host = self.authority.rsplit_once(':').map_or(self.authority.as_str(), |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for DaemonAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

/// Builder of a path with a query.
#[derive(Debug, Clone)]
pub(super) struct RequestPath {
    text: String,
    has_query: bool,
}

impl RequestPath {
    /// Starts with a path that needs no encoding.
    pub(super) fn new(start: &str) -> Self {
        Self { text: start.to_owned(), has_query: false }
    }

    /// Appends a segment, percent-encoded.
    pub(super) fn segment(mut self, segment: &str) -> Self {
        self.text.push('/');
        self.text.push_str(&percent::encode(segment, ""));
        self
    }

    /// Appends a query parameter.
    pub(super) fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.text.push_str(name);
        self.text.push('=');
        self.text.push_str(&percent::encode(&value.to_string(), ""));
        self
    }

    /// Appends a query parameter if it has a value.
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

fn short(text: &str) -> String {
    cronhold_schedule::text::shortened(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        for (text, expected) in [
            ("http://127.0.0.1:2766", "http://127.0.0.1:2766 127.0.0.1 2766"),
            ("http://127.0.0.1:80/", "http://127.0.0.1:80 127.0.0.1 80"),
            ("http://localhost", "http://localhost:2766 localhost 2766"),
            ("http://[::1]:99", "http://[::1]:99 ::1 99"),
            ("http://[::1]", "http://[::1]:2766 ::1 2766"),
            ("https://host:1", "`https://host:1` cannot be used: this version does not support TLS"),
            ("host:1", "`host:1` does not begin with http://"),
            ("http://host:one", "`http://host:one` does not end with a port number"),
            ("http://host:1/api", "`http://host:1/api` does not end with a port number"),
            ("http://me@host:1", "`http://me@host:1` is not just a host and a port"),
            ("http://", "`http://` is not just a host and a port"),
            ("http://[]:1", "`http://[]:1` is not just a host and a port"),
        ] {
            let read = DaemonAddress::parse(text);
            let shown =
                read.map_or_else(|error| error.to_string(), |read| format!("{read} {} {}", read.host(), read.port()));
            assert_eq!(shown, expected, "{text}");
        }
    }

    #[test]
    fn any_name_becomes_one_path_segment() {
        let path = RequestPath::new("/api/v1")
            .segment("jobs")
            .segment("demo/a b#1?ä%")
            .with("from", "2026-01-01T00:00:00+01:00");
        let expected = "/api/v1/jobs/demo%2Fa%20b%231%3F%C3%A4%25?from=2026-01-01T00%3A00%3A00%2B01%3A00";
        assert_eq!(path.with_some("x", None::<u8>).with_some("n", Some(2)).as_str(), format!("{expected}&n=2"));
    }
}
