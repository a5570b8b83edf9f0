//! The address to listen on. Addresses that other machines can reach need an explicit option, because HTTP is not
//! encrypted.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use cronhold_api::PORT;
use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;

/// The address to listen on, and the requests that are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenOptions {
    /// The address. Port 0 selects a free port.
    pub address: SocketAddr,
    /// Whether an address that other machines can reach is allowed.
    pub is_open: bool,
    /// Host names of requests that are accepted beside the address itself.
    pub hosts: Vec<String>,
}

/// A bound socket that is not served yet.
#[derive(Debug)]
pub struct BoundListener {
    pub(crate) socket: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) hosts: Vec<String>,
}

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Other machines could reach it.
    #[error("{0} is reachable from other machines, and HTTP is not encrypted")]
    Open(SocketAddr),
    /// The system cannot bind it.
    #[error("cannot listen on {0}: {1}")]
    Refused(SocketAddr, io::Error),
}

impl ListenError {
    /// How to fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Open(_) => "add --insecure-listen if you trust every machine on that network with the token",
            Self::Refused(_, error) if error.kind() == io::ErrorKind::AddrInUse => {
                "another daemon may be running; select another port with --listen"
            }
            Self::Refused(..) => "select an address of this machine with --listen",
        }
    }
}

impl Default for ListenOptions {
    /// The loopback address and the default port.
    fn default() -> Self {
        Self { address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT), is_open: false, hosts: Vec::new() }
    }
}

impl ListenOptions {
    /// Parses an address such as `127.0.0.1:2766`, `[::1]:2766`, `localhost:2766`, or one of them without a port.
    pub fn parse(text: &str) -> Result<SocketAddr, TextError> {
        let numbers = text.replacen("localhost", "127.0.0.1", usize::from(text.starts_with("localhost")));
        let bare = numbers.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let read = numbers.parse().or_else(|_| bare.map(|ip| SocketAddr::new(ip, PORT)));
        read.map_err(|_| {
            TextError::new(0..text.len(), format!("`{}` is not an address to listen on", shortened(text)))
                .hint("write an address and a port, such as 127.0.0.1:2766")
        })
    }

    /// Binds the socket. Connections are queued until the server starts.
    pub fn bind(&self) -> Result<BoundListener, ListenError> {
        if !self.address.ip().is_loopback() && !self.is_open {
            return Err(ListenError::Open(self.address));
        }
        let bound = TcpListener::bind(self.address).and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok((socket.local_addr()?, socket))
        });
        let (address, socket) = bound.map_err(|error| ListenError::Refused(self.address, error))?;
        Ok(BoundListener { socket, address, hosts: self.hosts.clone() })
    }
}

impl BoundListener {
    /// The bound address, with the selected port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL for programs and browsers on this machine.
    pub fn url(&self) -> String {
        let mut shown = self.address;
        if shown.ip().is_unspecified() {
            shown.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        format!("http://{shown}")
    }
}

impl fmt::Display for BoundListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses_are_parsed() {
        for (text, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("127.0.0.1", "127.0.0.1:2766"),
            ("localhost", "127.0.0.1:2766"),
            ("localhost:0", "127.0.0.1:0"),
            ("[::1]:9", "[::1]:9"),
            ("::1", "[::1]:2766"),
            ("0.0.0.0:2766", "0.0.0.0:2766"),
        ] {
            assert_eq!(ListenOptions::parse(text).map(|address| address.to_string()), Ok(expected.to_owned()));
        }
        for bad in ["", ":2766", "2766", "localhosts", "127.0.0.1:66000", "example.org:80", "127.0.0.1:2766/"] {
            let error = ListenOptions::parse(bad).expect_err(bad);
            assert!(error.message.contains("is not an address"), "{}", error.message);
        }
    }

    #[test]
    fn public_address_needs_an_option() {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let listen = ListenOptions { address: address.parse().expect("an address"), ..ListenOptions::default() };
            let error = listen.bind().expect_err(address);
            assert!(matches!(error, ListenError::Open(_)), "{error}");
            assert!(error.hint().contains("--insecure-listen"));
        }
        let open =
            ListenOptions { address: "0.0.0.0:0".parse().expect("an address"), is_open: true, hosts: Vec::new() };
        let bound = open.bind().expect("bound");
        assert_ne!(bound.address().port(), 0);
        assert_eq!(bound.url(), format!("http://127.0.0.1:{}", bound.address().port()));
        let same = ListenOptions { address: bound.address(), is_open: true, hosts: Vec::new() };
        assert!(same.bind().expect_err("taken").hint().contains("another port"));
    }
}
