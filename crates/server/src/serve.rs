//! The thread that serves HTTP. It has an executor of its own, so that many requests delay each other but never the
//! node.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::guard::AllowedHosts;
use crate::listen::BoundListener;
use crate::{AppState, router};

/// Connections that are served at once; others wait to be accepted.
const CONNECTIONS_MAX: usize = 512;
/// How long a request's head may take, and how long a connection may be idle.
const HEAD_WAIT: Duration = Duration::from_secs(60);
/// Longest head of a request in bytes.
const HEAD_MAX: usize = 64 * 1024;
/// Most headers of a request.
const HEADERS_MAX: usize = 64;
/// How long to wait after a connection could not be accepted.
const ACCEPT_WAIT: Duration = Duration::from_millis(50);
/// How long requests in progress may take when the server stops. Feeds and followed outputs would never end.
const STOP_WAIT: Duration = Duration::from_secs(1);

/// A running server. It stops when this is dropped.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Starts to serve requests.
    pub fn start(listening: BoundListener, app: Arc<AppState>) -> io::Result<Self> {
        let BoundListener { socket, address, hosts } = listening;
        let (stop, stopping) = watch::channel(false);
        let executor = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let routes = router(app, AllowedHosts::new(address, &hosts));
        let socket = {
            let _inside = executor.enter();
            TcpListener::from_std(socket)?
        };
        let thread = std::thread::Builder::new().name("http".to_owned()).spawn(move || {
            executor.block_on(accept(socket, routes, stopping));
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

/// Accepts connections until the server stops, and waits for those that are left.
async fn accept(socket: TcpListener, routes: Router, stopping: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let next = async || {
        let permit = Arc::clone(&room).acquire_owned().await.expect("the semaphore is never closed");
        loop {
            match socket.accept().await {
                Ok((stream, _)) => return (stream, permit),
                // The connection is gone already, or there are no file descriptors left.
                Err(error) => {
                    debug!(event = "accept_failed", "cannot accept a connection: {error}");
                    sleep(ACCEPT_WAIT).await;
                }
            }
        }
    };
    let mut until = stopping.clone();
    loop {
        let (stream, permit) = tokio::select! {
            biased;
            _ = until.wait_for(|stop| *stop) => break,
            accepted = next() => accepted,
        };
        tokio::spawn(converse(stream, routes.clone(), stopping.clone(), permit));
    }
    drop(socket);
    let all = u32::try_from(CONNECTIONS_MAX).expect("it is a small number");
    let _ = timeout(STOP_WAIT, room.acquire_many(all)).await;
}

/// Serves one connection to its end.
async fn converse(
    stream: TcpStream,
    routes: Router,
    mut stopping: watch::Receiver<bool>,
    permit: OwnedSemaphorePermit,
) {
    // Replies are small and written at once.
    let _ = stream.set_nodelay(true);
    let mut settings = http1::Builder::new();
    settings.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT).max_buf_size(HEAD_MAX).max_headers(HEADERS_MAX);
    let connection = settings.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    let mut connection = std::pin::pin!(connection);
    // A connection ends with an error only if the client breaks it off.
    let is_over = tokio::select! {
        biased;
        _ = connection.as_mut() => true,
        _ = stopping.wait_for(|stop| *stop) => false,
    };
    if !is_over {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(STOP_WAIT, connection).await;
    }
    drop(permit);
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream as Stream;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::ListenOptions;
    use crate::testing::with_rig;

    /// Long enough for every machine; nothing is measured by it.
    const PATIENCE: Duration = Duration::from_secs(20);

    fn connect(address: SocketAddr) -> Stream {
        let stream = Stream::connect(address).expect("someone listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Says something and hears everything until the other side has no more to say.
    fn converse(address: SocketAddr, said: &str) -> String {
        let mut stream = connect(address);
        let _ = stream.write_all(said.as_bytes());
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        String::from_utf8_lossy(&heard).into_owned()
    }

    /// Time passes by itself here as soon as everybody waits.
    #[test]
    fn slow_client_is_disconnected() {
        let executor = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        executor.expect("an executor").block_on(async {
            let socket = TcpListener::bind("127.0.0.1:0").await.expect("bound");
            let address = socket.local_addr().expect("an address");
            let (_stop, stopping) = watch::channel(false);
            tokio::spawn(accept(socket, Router::new(), stopping));
            let begun = tokio::time::Instant::now();
            for said in ["", "GET /health HTTP/1.1\r\nHost: ", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
                let mut stream = TcpStream::connect(address).await.expect("someone listens");
                stream.write_all(said.as_bytes()).await.expect("said");
                let mut heard = Vec::new();
                // Its end is the end of the connection, which nobody here has asked for.
                stream.read_to_end(&mut heard).await.expect("heard");
                assert_eq!(heard.is_empty(), !said.ends_with("\r\n\r\n"), "{said}");
            }
            assert!(begun.elapsed() >= HEAD_WAIT);
        });
    }

    #[test]
    fn server_serves_requests_until_it_stops() {
        with_rig("serve", async |rig| {
            let listen =
                ListenOptions { address: "127.0.0.1:0".parse().expect("an address"), ..ListenOptions::default() };
            let listening = listen.bind().expect("bound");
            let server = HttpServer::start(listening, Arc::clone(&rig.app)).expect("a thread");
            let address = server.address();
            let asked = format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
            let answer = converse(address, &asked);
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            assert!(answer.contains("x-content-type-options: nosniff"), "{answer}");
            for (said, status) in [
                (asked.replace(&address.to_string(), "evil.example"), "403"),
                ("nonsense\r\n\r\n".to_owned(), "400"),
                ("GET /health HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(), "400"),
                (asked.replace("GET", "GET /a /b"), "400"),
                (asked.replace("Connection", &format!("{}Connection", "X: y\r\n".repeat(HEADERS_MAX))), "431"),
            ] {
                let answer = converse(address, &said);
                assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer}");
            }
            // The connection may be gone before all of this was said, and the answer with it.
            let long = format!("X: {}\r\nConnection", "y".repeat(4 * HEAD_MAX));
            let answer = converse(address, &asked.replace("Connection", &long));
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
            // One who has connected and says nothing, and one who is in the middle of something.
            let (mut silent, mut slow) = (connect(address), connect(address));
            slow.write_all(b"GET /health HTTP/1.1\r\nHost: ").expect("said");
            // One who wants to be told everything that happens from now on, for ever.
            let mut follower = connect(address);
            let follow =
                format!("GET /api/v1/feed HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\r\n", rig.token);
            follower.write_all(follow.as_bytes()).expect("said");
            let mut begun = [0; 15];
            follower.read_exact(&mut begun).expect("an answer");
            assert_eq!(&begun, b"HTTP/1.1 200 OK");
            server.stop();
            assert!(Stream::connect(address).is_err(), "nobody listens any more");
            for left in [&mut silent, &mut slow, &mut follower] {
                let mut rest = Vec::new();
                let _ = left.read_to_end(&mut rest);
                assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
            }
        });
    }
}
