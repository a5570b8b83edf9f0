//! Answers without a known end: someone writes them bit by bit, and stops when nobody reads any more.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use futures_core::Stream;
use tokio::sync::mpsc;

/// Bits that may wait for whoever reads; then the writer waits.
const WAITING_MAX: usize = 4;

/// The writing end of an answer.
#[derive(Debug)]
pub(crate) struct Writer(mpsc::Sender<Bytes>);

/// The reader is gone: there is nobody to write for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// The reading end.
struct Reader(mpsc::Receiver<Bytes>);

/// An answer that a task writes.
pub(crate) fn body<F: Future<Output = Result<(), Gone>> + Send + 'static>(write: impl FnOnce(Writer) -> F) -> Body {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let work = write(Writer(sender));
    tokio::spawn(async move {
        // Whoever is gone needs no answer.
        let _ = work.await;
    });
    Body::from_stream(Reader(receiver))
}

impl Writer {
    /// Writes, as soon as there is room.
    pub(crate) async fn write(&self, bytes: impl Into<Bytes>) -> Result<(), Gone> {
        self.0.send(bytes.into()).await.map_err(|_| Gone)
    }

    /// Waits until nobody reads any more.
    pub(crate) async fn gone(&self) {
        self.0.closed().await;
    }
}

impl Stream for Reader {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(Ok))
    }
}
