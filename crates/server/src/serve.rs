//! The thread that serves HTTP. It has its own executor, so that many requests delay each other but never the node.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::{Extension, Router};
use cronhold_core::RunId;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::connections::{ClientConnection, ConnectionTable, TableEntry, TimedStream};
use crate::guard::{AllowedHosts, HEAD_MAX};
use crate::listen::BoundListener;
use crate::local::LocalListener;
use crate::{AppState, router};

/// Maximum number of open connections to the port.
const CONNECTIONS_MAX: usize = 512;
/// Maximum number of open connections to the socket in the data directory.
const LOCAL_MAX: usize = 128;
/// Timeout for the head of a request, and for an idle connection.
const HEAD_WAIT: Duration = Duration::from_secs(60);
/// Maximum number of headers of a request.
const HEADERS_MAX: usize = 64;
/// Delay after a connection could not be accepted.
const ACCEPT_WAIT: Duration = Duration::from_millis(50);
/// Timeout for requests in progress when the server stops. Feeds and followed outputs would never end.
const STOP_WAIT: Duration = Duration::from_secs(1);

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Starts to serve requests to the port, and to the socket in the data directory if there is one.
    pub fn start(listening: BoundListener, local: Option<LocalListener>, app: Arc<AppState>) -> io::Result<Self> {
        let BoundListener { socket, address, hosts } = listening;
        let (stop, stopping) = watch::channel(false);
        let executor = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let run_of_process = Arc::clone(&app.programs.run_of_process);
        let routes = router(app, AllowedHosts::new(address, &hosts));
        let socket = {
            let _inside = executor.enter();
            TcpListener::from_std(socket)?
        };
        let thread = std::thread::Builder::new().name("http".to_owned()).spawn(move || {
            executor.block_on(async {
                let serve_local = async {
                    if let Some(local) = local
                        && let Err(error) =
                            accept_local(local, &*run_of_process, routes.clone(), stopping.clone()).await
                    {
                        warn!(event = "local_socket_failed", "cannot serve the socket in the data directory: {error}");
                    }
                };
                tokio::join!(accept_tcp(socket, routes.clone(), stopping.clone()), serve_local);
            });
            // Requests that still wait for a store are dropped.
            executor.shutdown_background();
        })?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Finishes requests in progress, and stops.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed to standard error already.
            let _ = thread.join();
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// Accepts the connections of one listener until the server stops, and waits for those that are left. `accept` returns
/// `None` for a connection that it has refused. Each listener has its own limit.
async fn accept_all<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    accept: impl AsyncFn() -> io::Result<Option<(S, ClientConnection)>>,
    connections_max: usize,
    routes: Router,
    stopping: watch::Receiver<bool>,
) {
    let table = ConnectionTable::new(connections_max);
    let mut until = stopping.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = until.wait_for(|stop| *stop) => break,
            accepted = next(&table, &accept) => accepted,
        };
        if let Some((stream, connection)) = accepted {
            let entry = table.add(connection);
            tokio::spawn(serve_connection(stream, routes.clone(), stopping.clone(), entry));
        }
    }
    // Closes the socket.
    drop(accept);
    let _ = timeout(STOP_WAIT, table.wait_until_empty()).await;
}

/// Accepts connections to the port.
async fn accept_tcp(socket: TcpListener, routes: Router, stopping: watch::Receiver<bool>) {
    let accept = async move || {
        let (stream, from) = socket.accept().await?;
        // Responses are small and written at once.
        let _ = stream.set_nodelay(true);
        Ok(Some((stream, ClientConnection::tcp(from.ip()))))
    };
    accept_all(accept, CONNECTIONS_MAX, routes, stopping).await;
}

/// Accepts connections to the socket in the data directory, from users that may control the daemon.
async fn accept_local(
    local: LocalListener,
    run_of_process: &dyn Fn(i32) -> Option<RunId>,
    routes: Router,
    stopping: watch::Receiver<bool>,
) -> io::Result<()> {
    let socket = UnixListener::from_std(local.socket.try_clone()?)?;
    let accept = async move || {
        let (stream, _) = socket.accept().await?;
        let Some(peer) = stream.peer_cred().ok().filter(|peer| local.accepts(peer.uid())) else { return Ok(None) };
        let program_run = peer.pid().and_then(run_of_process);
        Ok(Some((stream, ClientConnection::local(program_run))))
    };
    accept_all(accept, LOCAL_MAX, routes, stopping).await;
    Ok(())
}

/// The next connection, when there is room for it.
async fn next<T>(table: &ConnectionTable, accept: &impl AsyncFn() -> io::Result<T>) -> T {
    table.wait_for_room().await;
    loop {
        match accept().await {
            Ok(accepted) => return accepted,
            // The connection is gone already, or there are no file descriptors left.
            Err(error) => {
                debug!(event = "accept_failed", "cannot accept a connection: {error}");
                sleep(ACCEPT_WAIT).await;
            }
        }
    }
}

/// Serves one connection to its end.
async fn serve_connection<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    routes: Router,
    mut stopping: watch::Receiver<bool>,
    entry: TableEntry,
) {
    let mut settings = http1::Builder::new();
    // hyper compares its buffer only when it needs more room. The guard refuses heads that it lets pass.
    settings.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT).max_buf_size(HEAD_MAX).max_headers(HEADERS_MAX);
    let routes = routes.layer(Extension(Arc::clone(&entry.connection)));
    let stream = TokioIo::new(TimedStream::new(stream));
    let connection = settings.serve_connection(stream, TowerToHyperService::new(routes));
    let mut connection = std::pin::pin!(connection);
    // A connection ends with an error only if the client closes it early or does not read.
    let is_stopping = tokio::select! {
        biased;
        _ = connection.as_mut() => false,
        _ = stopping.wait_for(|stop| *stop) => true,
        () = entry.connection.evicted() => false,
    };
    if is_stopping {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(STOP_WAIT, connection).await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream as Stream;
    use std::os::unix::net::UnixStream;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::ListenOptions;
    use crate::testing::{ServerScratchDir, with_rig};

    /// Read timeout, long enough for a slow machine. No test measures it.
    const READ_TIMEOUT: Duration = Duration::from_secs(20);

    fn connect(address: SocketAddr) -> Stream {
        let stream = Stream::connect(address).expect("connected");
        stream.set_read_timeout(Some(READ_TIMEOUT)).expect("a timeout");
        stream
    }

    /// Sends a text and reads until the server closes the connection.
    fn exchange(address: SocketAddr, sent: &str) -> String {
        exchange_pieces(connect(address), sent, sent.len())
    }

    /// Sends a text with one write for each piece, and reads until the server closes the connection.
    fn exchange_pieces(mut stream: impl Read + Write, sent: &str, piece: usize) -> String {
        for piece in sent.as_bytes().chunks(piece) {
            let _ = stream.write_all(piece);
        }
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received);
        String::from_utf8_lossy(&received).into_owned()
    }

    /// The paused clock advances whenever all tasks wait.
    #[test]
    fn slow_client_is_disconnected() {
        let executor = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        executor.expect("an executor").block_on(async {
            let socket = TcpListener::bind("127.0.0.1:0").await.expect("bound");
            let address = socket.local_addr().expect("an address");
            let (_stop, stopping) = watch::channel(false);
            let serving = accept_tcp(socket, Router::new(), stopping);
            let clients = async {
                let begun = tokio::time::Instant::now();
                for sent in ["", "GET /health HTTP/1.1\r\nHost: ", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
                    let mut stream = TcpStream::connect(address).await.expect("connected");
                    stream.write_all(sent.as_bytes()).await.expect("sent");
                    let mut received = Vec::new();
                    // The stream ends when the server closes the connection; the client does not request that.
                    stream.read_to_end(&mut received).await.expect("received");
                    assert_eq!(received.is_empty(), !sent.ends_with("\r\n\r\n"), "{sent}");
                }
                assert!(begun.elapsed() >= HEAD_WAIT);
            };
            tokio::select! {
                () = serving => panic!("the server has stopped"),
                () = clients => {}
            }
        });
    }

    /// Requests with heads of exactly these lengths, by both listeners, at once and in pieces.
    #[test]
    fn head_longer_than_the_limit_is_refused() {
        with_rig("heads", async |rig| {
            let scratch = ServerScratchDir::new("heads-socket");
            let listen =
                ListenOptions { address: "127.0.0.1:0".parse().expect("an address"), ..ListenOptions::default() };
            let local = LocalListener::bind(scratch.path()).expect("bound");
            let listening = listen.bind().expect("bound");
            let server = HttpServer::start(listening, Some(local), Arc::clone(&rig.app)).expect("a thread");
            let address = server.address();
            let path = scratch.path().join(cronhold_api::SOCKET);
            for (length, status) in [(HEAD_MAX - 1, "200"), (HEAD_MAX, "200"), (HEAD_MAX + 1, "431"), (90_000, "431")] {
                let start = format!("GET /health HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nx: ");
                let head = format!("{start}{}\r\n\r\n", "y".repeat(length - start.len() - 4));
                for piece in [length, 60_000, 1_000] {
                    let by_tcp = exchange_pieces(connect(address), &head, piece);
                    let by_socket = exchange_pieces(UnixStream::connect(&path).expect("connected"), &head, piece);
                    for response in [by_tcp, by_socket] {
                        // The server may close the connection before it has read everything; the response is lost then.
                        let is_lost = status == "431" && response.is_empty();
                        let is_as_expected = response.starts_with(&format!("HTTP/1.1 {status}"));
                        assert!(is_lost || is_as_expected, "{length} in pieces of {piece}: {response}");
                    }
                }
            }
            server.stop();
        });
    }

    #[test]
    fn server_serves_requests_until_it_stops() {
        with_rig("serve", async |rig| {
            let listen =
                ListenOptions { address: "127.0.0.1:0".parse().expect("an address"), ..ListenOptions::default() };
            let listening = listen.bind().expect("bound");
            let server = HttpServer::start(listening, None, Arc::clone(&rig.app)).expect("a thread");
            let address = server.address();
            let request = format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
            let response = exchange(address, &request);
            assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
            assert!(response.contains("x-content-type-options: nosniff"), "{response}");
            for (sent, status) in [
                (request.replace(&address.to_string(), "evil.example"), "403"),
                ("nonsense\r\n\r\n".to_owned(), "400"),
                ("GET /health HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(), "400"),
                (request.replace("GET", "GET /a /b"), "400"),
                (request.replace("Connection", &format!("{}Connection", "X: y\r\n".repeat(HEADERS_MAX))), "431"),
            ] {
                let response = exchange(address, &sent);
                assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {response}");
            }
            // The server may close the connection before the client has sent everything, and the response is lost.
            let long = format!("X: {}\r\nConnection", "y".repeat(4 * HEAD_MAX));
            let response = exchange(address, &request.replace("Connection", &long));
            assert!(response.is_empty() || response.starts_with("HTTP/1.1 431"), "{response}");
            // An idle connection, and one in the middle of a request head.
            let (mut idle, mut partial) = (connect(address), connect(address));
            partial.write_all(b"GET /health HTTP/1.1\r\nHost: ").expect("sent");
            // A client of the feed, whose response never ends.
            let mut follower = connect(address);
            let follow =
                format!("GET /api/v1/feed HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\r\n", rig.token);
            follower.write_all(follow.as_bytes()).expect("sent");
            let mut begun = [0; 15];
            follower.read_exact(&mut begun).expect("a response");
            assert_eq!(&begun, b"HTTP/1.1 200 OK");
            server.stop();
            assert!(Stream::connect(address).is_err(), "the port is closed");
            for left in [&mut idle, &mut partial, &mut follower] {
                let mut rest = Vec::new();
                let _ = left.read_to_end(&mut rest);
                assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
            }
        });
    }
}
