//! The open connections of a listener. When their number reaches the limit, the oldest connection that has not been
//! authenticated is closed to make room. So connections that send nothing cannot keep others out.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use cronhold_core::RunId;
use cronhold_store::lock_mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};

/// Maximum number of connections from one address of another machine that are not authenticated.
const STRANGERS_PER_ADDRESS: usize = 64;
/// How long a client may read nothing of a response.
pub(crate) const WRITE_WAIT: Duration = Duration::from_secs(30);

/// One connection.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    is_local: bool,
    /// The run whose program is the other side of a local connection.
    program_run: Option<RunId>,
    /// The address, if it belongs to another machine.
    remote: Option<IpAddr>,
    is_trusted: AtomicBool,
    close: Notify,
}

/// The open connections of one listener.
#[derive(Debug)]
pub(crate) struct ConnectionTable {
    max: usize,
    open: Mutex<OpenConnections>,
    closed: Notify,
}

#[derive(Debug, Default)]
struct OpenConnections {
    last_id: u64,
    /// By the order in which they were accepted.
    by_id: BTreeMap<u64, Arc<ClientConnection>>,
}

/// An entry of the table. Dropping it removes the connection.
#[derive(Debug)]
pub(crate) struct TableEntry {
    table: Arc<ConnectionTable>,
    id: u64,
    pub(crate) connection: Arc<ClientConnection>,
}

impl ClientConnection {
    /// A connection to a TCP port.
    pub(crate) fn tcp(from: IpAddr) -> Self {
        Self::new(false, None, Some(from).filter(|from| !from.is_loopback()))
    }

    /// A connection to the socket in the data directory, from a process of a user that may control the daemon; with a
    /// run, if its program is that process.
    pub(crate) fn local(program_run: Option<RunId>) -> Self {
        Self::new(true, program_run, None)
    }

    fn new(is_local: bool, program_run: Option<RunId>, remote: Option<IpAddr>) -> Self {
        Self { is_local, program_run, remote, is_trusted: AtomicBool::new(false), close: Notify::new() }
    }

    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }

    pub(crate) fn program_run(&self) -> Option<RunId> {
        self.program_run
    }

    /// Records that a request was authenticated. The connection is no longer closed to make room.
    pub(crate) fn set_trusted(&self) {
        self.is_trusted.store(true, Ordering::Relaxed);
    }

    fn is_trusted(&self) -> bool {
        self.is_trusted.load(Ordering::Relaxed)
    }

    /// Waits until the connection is to be closed to make room.
    pub(crate) async fn evicted(&self) {
        self.close.notified().await;
    }
}

impl ConnectionTable {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, open: Mutex::default(), closed: Notify::new() })
    }

    /// Waits until another connection can be accepted.
    pub(crate) async fn wait_for_room(&self) {
        loop {
            let closed = self.closed.notified();
            {
                let open = lock_mutex(&self.open);
                if open.by_id.len() < self.max || open.by_id.values().any(|connection| !connection.is_trusted()) {
                    return;
                }
            }
            closed.await;
        }
    }

    /// Adds a connection, and closes another one if there are too many.
    pub(crate) fn add(self: &Arc<Self>, connection: ClientConnection) -> TableEntry {
        let mut open = lock_mutex(&self.open);
        let connection = Arc::new(connection);
        let is_neighbour = |other: &ClientConnection| other.remote == connection.remote && !other.is_trusted();
        let neighbours = open.by_id.values().filter(|other| is_neighbour(other)).count();
        let victim = if connection.remote.is_some() && neighbours >= STRANGERS_PER_ADDRESS {
            open.by_id.iter().find(|(_, other)| is_neighbour(other)).map(|(id, _)| *id)
        } else if open.by_id.len() >= self.max {
            open.by_id.iter().find(|(_, other)| !other.is_trusted()).map(|(id, _)| *id)
        } else {
            None
        };
        if let Some(victim) = victim.and_then(|victim| open.by_id.remove(&victim)) {
            victim.close.notify_one();
        }
        open.last_id += 1;
        let id = open.last_id;
        open.by_id.insert(id, Arc::clone(&connection));
        TableEntry { table: Arc::clone(self), id, connection }
    }

    /// Waits until all connections are closed.
    pub(crate) async fn wait_until_empty(&self) {
        loop {
            let closed = self.closed.notified();
            if lock_mutex(&self.open).by_id.is_empty() {
                return;
            }
            closed.await;
        }
    }
}

impl Drop for TableEntry {
    fn drop(&mut self) {
        lock_mutex(&self.table.open).by_id.remove(&self.id);
        self.table.closed.notify_waiters();
    }
}

/// A stream that fails if the other side reads nothing for [`WRITE_WAIT`].
#[derive(Debug)]
pub(crate) struct TimedStream<S> {
    inner: S,
    /// Runs while a write waits for the other side.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedStream<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, stalled: None }
    }

    /// Passes the result of a write on, or an error if writes have waited for too long.
    fn check<T>(&mut self, result: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.stalled = None;
            return result;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(WRITE_WAIT)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read the response")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.check(result, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.check(result, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.inner).poll_flush(context);
        self.check(result, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    fn is_open(entry: &TableEntry) -> bool {
        lock_mutex(&entry.table.open).by_id.contains_key(&entry.id)
    }

    #[test]
    fn oldest_stranger_makes_room_and_trusted_connections_stay() {
        let table = ConnectionTable::new(3);
        let here = IpAddr::from([127, 0, 0, 1]);
        let trusted = table.add(ClientConnection::tcp(here));
        trusted.connection.set_trusted();
        let (oldest, younger) = (table.add(ClientConnection::tcp(here)), table.add(ClientConnection::tcp(here)));
        let newest = table.add(ClientConnection::tcp(here));
        assert_eq!([&trusted, &oldest, &younger, &newest].map(is_open), [true, false, true, true]);
    }

    #[test]
    fn one_remote_address_cannot_take_all_room() {
        let table = ConnectionTable::new(10 * STRANGERS_PER_ADDRESS);
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let first = table.add(ClientConnection::tcp(other));
        let all: Vec<TableEntry> = (0..=STRANGERS_PER_ADDRESS).map(|_| table.add(ClientConnection::tcp(one))).collect();
        assert!(is_open(&first) && !is_open(&all[0]) && is_open(&all[1]));
    }

    fn paused() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("an executor")
    }

    #[test]
    fn full_table_of_trusted_connections_waits_for_one_to_close() {
        paused().block_on(async {
            let table = ConnectionTable::new(1);
            let entry = table.add(ClientConnection::local(None));
            table.wait_for_room().await;
            entry.connection.set_trusted();
            let waiting = tokio::time::timeout(Duration::from_secs(1), table.wait_for_room());
            assert!(waiting.await.is_err());
            drop(entry);
            table.wait_for_room().await;
            table.wait_until_empty().await;
        });
    }

    #[test]
    fn write_fails_if_the_other_side_never_reads() {
        paused().block_on(async {
            let (ours, _theirs) = tokio::io::duplex(16);
            let mut stream = TimedStream::new(ours);
            let error = stream.write_all(&[0; 64]).await.expect_err("nobody reads");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }
}
