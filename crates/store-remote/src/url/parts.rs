//! Splits a URL into its parts, from left to right, so that the first mistake is the one that is reported.

use std::fmt;

use cronhold_schedule::TextError;

use super::{ServerAddress, UrlCredentials, UrlParams, invalid_url, read_servers};

/// The parts of a URL.
pub struct UrlParts<'t> {
    /// The part before `://`.
    pub scheme: &'t str,
    pub credentials: UrlCredentials,
    /// The list of servers; may be empty.
    hosts: &'t str,
    /// From the first slash after the servers to the parameters; empty, or begins with a slash. It is not decoded.
    pub path: &'t str,
    query: &'t str,
}

impl<'t> UrlParts<'t> {
    /// Splits a URL. `None` if the text has no scheme.
    pub fn split(text: &'t str) -> Option<Result<Self, TextError>> {
        let (scheme, rest) = text.split_once("://")?;
        Some(Self::split_rest(scheme, rest))
    }

    fn split_rest(scheme: &'t str, rest: &'t str) -> Result<Self, TextError> {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        if tail.contains('#') {
            return Err(invalid_url("unexpected `#`").hint("write `#` in names and passwords as %23"));
        }
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let (credentials, hosts) = UrlCredentials::split(authority)?;
        Ok(Self { scheme, credentials, hosts, path, query })
    }

    /// Whether the URL names servers.
    pub fn has_servers(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// The servers, of which there is at least one. `port` is the one of servers without a port; `example` is a URL for
    /// hints.
    pub fn servers(&self, port: u16, example: &str) -> Result<Vec<ServerAddress>, TextError> {
        read_servers(self.hosts, port, example).map_err(|error| self.unless_password(error))
    }

    /// The parameters.
    pub fn params(&self) -> Result<UrlParams, TextError> {
        UrlParams::read(self.query)
    }

    /// A password with a slash looks like a server and a path. Then the supposed server is a part of the password.
    fn unless_password(&self, error: TextError) -> TextError {
        if self.path.contains('@') || self.query.contains('@') {
            let hint = "write `/` as %2F, `?` as %3F, `#` as %23, `@` as %40";
            invalid_url("a password has a character that ends it").hint(hint)
        } else {
            error
        }
    }
}

/// Shows only the scheme, because every other part of an invalid URL may be a part of a password.
impl fmt::Debug for UrlParts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlParts").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> UrlParts<'_> {
        UrlParts::split(text).expect("it has a scheme").unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn parts_are_found() {
        for (text, scheme, servers, path, params) in [
            ("zk://a,b:2/base/more?timeout=10s", "zk", 2, "/base/more", 1),
            ("zk:///base", "zk", 0, "/base", 0),
            ("x+y://u:p@a", "x+y", 1, "", 0),
            ("x://a?b=c&d", "x", 1, "", 2),
        ] {
            let parts = split(text);
            assert_eq!((parts.scheme, parts.path), (scheme, path), "{text}");
            assert_eq!(parts.has_servers(), servers > 0, "{text}");
            assert_eq!(parts.servers(1, "x://h").map_or(0, |servers| servers.len()), servers, "{text}");
            assert_eq!(parts.params().expect(text).names().count(), params, "{text}");
        }
        assert!(UrlParts::split("localhost:6379").is_none());
        assert!(UrlParts::split("x://u:p#x@h").is_some_and(|parts| parts.is_err()));
    }

    #[test]
    fn parts_of_passwords_are_not_shown() {
        for text in ["x://u:se/cret@h", "x://u:se?cret@h", "x://:se/cret@h:1"] {
            let parts = split(text);
            let shown = format!("{} {parts:?}", parts.servers(1, "x://h").expect_err(text));
            assert!(!shown.contains("se") || !shown.contains("cret"), "{text}: {shown}");
            assert!(shown.contains("a password has a character that ends it"), "{text}: {shown}");
        }
    }
}
