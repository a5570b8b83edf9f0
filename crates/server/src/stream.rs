//! Streamed response bodies: a task writes them in parts, and stops when the client has disconnected.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use futures_core::Stream;
use tokio::sync::mpsc;

/// Number of parts that can be buffered. If the buffer is full, the writer waits.
const WAITING_MAX: usize = 4;

/// The writing end of a body.
#[derive(Debug)]
pub(crate) struct StreamWriter(mpsc::Sender<Bytes>);

/// The client has disconnected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReaderGone;

/// The reading end of a body.
struct StreamReader(mpsc::Receiver<Bytes>);

/// A response body that a task writes.
pub(crate) fn body<F: Future<Output = Result<(), ReaderGone>> + Send + 'static>(
    write: impl FnOnce(StreamWriter) -> F,
) -> Body {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let work = write(StreamWriter(sender));
    tokio::spawn(async move {
        // A client that has disconnected is not an error.
        let _ = work.await;
    });
    Body::from_stream(StreamReader(receiver))
}

impl StreamWriter {
    /// Writes a part. Waits while the buffer is full.
    pub(crate) async fn write(&self, bytes: impl Into<Bytes>) -> Result<(), ReaderGone> {
        self.0.send(bytes.into()).await.map_err(|_| ReaderGone)
    }

    /// Waits until the client has disconnected.
    pub(crate) async fn gone(&self) {
        self.0.closed().await;
    }
}

impl Stream for StreamReader {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(Ok))
    }
}
