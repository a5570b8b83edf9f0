//! Lists of servers: `host`, `host:port` or `[address]:port`, separated by commas.

use std::fmt;

use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;

use super::invalid_url;

/// Servers in one list, at most.
const SERVERS_MAX: usize = 64;

/// The host and the port of a server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ServerAddress {
    /// A name or an address, without brackets.
    pub host: String,
    pub port: u16,
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Reads a list of servers. `port` is the one of servers without a port; `example` is a URL for hints.
pub fn read_servers(hosts: &str, port: u16, example: &str) -> Result<Vec<ServerAddress>, TextError> {
    if hosts.is_empty() {
        return Err(invalid_url("the URL names no server").hint(format!("such as {example}")));
    }
    let servers = hosts.split(',').map(|host| read_server(host, port, example));
    let servers: Vec<ServerAddress> = servers.collect::<Result<_, _>>()?;
    if servers.len() > SERVERS_MAX {
        return Err(invalid_url(format!("a URL can name at most {SERVERS_MAX} servers")));
    }
    Ok(servers)
}

fn read_server(text: &str, port: u16, example: &str) -> Result<ServerAddress, TextError> {
    let (host, digits) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').unwrap_or(rest))),
        None => match text.rsplit_once(':') {
            Some((host, digits)) => (host, Some(digits)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err(invalid_url("a server has an empty name").hint(format!("such as {example}")));
    }
    let port = match digits {
        None => port,
        Some(digits) => digits
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| invalid_url(format!("`{}` is not a port", shortened(digits))))?,
    };
    Ok(ServerAddress { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_servers_are_read_and_printed() {
        for (hosts, printed) in [
            ("localhost", "localhost:7"),
            ("a:1,b,c:3", "a:1,b:7,c:3"),
            ("[::1]", "[::1]:7"),
            ("[::1]:8,127.0.0.1", "[::1]:8,127.0.0.1:7"),
        ] {
            let servers = read_servers(hosts, 7, "x://h").expect(hosts);
            let texts: Vec<String> = servers.iter().map(ToString::to_string).collect();
            assert_eq!(texts.join(","), printed, "{hosts}");
        }
    }

    #[test]
    fn invalid_servers_are_rejected() {
        for (hosts, message) in [
            ("", "the URL names no server (such as x://h)"),
            ("a,,b", "a server has an empty name (such as x://h)"),
            (":7", "a server has an empty name (such as x://h)"),
            ("a:0", "`0` is not a port"),
            ("a:65536", "`65536` is not a port"),
            (&vec!["a"; SERVERS_MAX + 1].join(","), "a URL can name at most 64 servers"),
        ] {
            let error = read_servers(hosts, 7, "x://h").expect_err(hosts);
            assert_eq!(error.to_string(), message, "{hosts}");
        }
    }
}
