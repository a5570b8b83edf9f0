//! Streams to the servers of a URL.

use cronhold_store_remote::url::ServerAddress;
use cronhold_store_remote::{BoxedStream, ConnectError, StreamOptions, open_stream};

use crate::url::{RedisUrl, Topology};

/// Opens a stream to a server. The caller applies the timeout.
pub(super) async fn open(url: &RedisUrl, server: &ServerAddress) -> Result<BoxedStream, ConnectError> {
    let options = StreamOptions { system: "Redis", tls: url.tls, ca: url.ca.as_deref(), tls_hint: tls_hint(url) };
    open_stream(server, options).await
}

/// What to change in the URL if only one side uses TLS.
pub(super) fn tls_hint(url: &RedisUrl) -> &'static str {
    match (url.tls, url.topology == Topology::Single) {
        (true, true) => "if the server does not use TLS on this port, write redis://",
        (true, false) => "if the servers do not use TLS on these ports, remove tls=true",
        (false, true) => "if the server uses TLS on this port, write rediss://",
        (false, false) => "if the servers use TLS on these ports, add tls=true",
    }
}
