//! The version of a server, by the command `srvr`, which every server answers unless its operator has disabled it.
//! Servers that use TLS are not asked.

use std::time::Duration;

use cronhold_store_remote::url::ServerAddress;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest wait for one server.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes that are read of a reply.
const REPLY_MAX: u64 = 4_096;

/// A version, such as 3.8.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServerVersion(pub(crate) u32, pub(crate) u32, pub(crate) u32);

impl ServerVersion {
    /// The oldest version that can read several znodes at once and watch trees.
    pub(crate) const OLDEST: Self = Self(3, 6, 0);
    /// The first version of its line that does not lose transactions when a member joins.
    pub(crate) const SAFE: Self = Self(3, 8, 5);

    /// Asks the servers in turn; `None` if none of them tells its version.
    pub(crate) async fn find(servers: &[ServerAddress]) -> Option<Self> {
        for server in servers {
            if let Ok(Ok(reply)) = timeout(PATIENCE, request(server)).await
                && let Some(version) = Self::parse(&reply)
            {
                return Some(version);
            }
        }
        None
    }

    /// Reads the first line of a reply, such as `Zookeeper version: 3.8.0-1, built on …`.
    fn parse(reply: &str) -> Option<Self> {
        let (_, text) = reply.lines().next()?.split_once(':')?;
        let end = text.trim_start().find(|sign: char| !sign.is_ascii_digit() && sign != '.')?;
        let mut numbers = text.trim_start()[..end].split('.').map(|number| number.parse().ok());
        Some(Self(numbers.next()??, numbers.next()??, numbers.next().flatten().unwrap_or(0)))
    }
}

impl std::fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(major, minor, patch) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

async fn request(server: &ServerAddress) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((server.host.as_str(), server.port)).await?;
    stream.write_all(b"srvr").await?;
    let mut reply = String::new();
    stream.take(REPLY_MAX).read_to_string(&mut reply).await?;
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_replies() {
        for (reply, version) in [
            ("Zookeeper version: 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on 2022\n", Some((3, 8, 0))),
            ("Zookeeper version: 3.9.4, built on 2025\nLatency", Some((3, 9, 4))),
            ("srvr is not executed because it is not in the whitelist.\n", None),
            ("", None),
        ] {
            let expected = version.map(|(major, minor, patch)| ServerVersion(major, minor, patch));
            assert_eq!(ServerVersion::parse(reply), expected, "{reply}");
        }
        assert!(ServerVersion(3, 5, 9) < ServerVersion::OLDEST && ServerVersion::SAFE < ServerVersion(3, 9, 0));
    }
}
