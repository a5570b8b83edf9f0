//! Streamed response bodies: a task writes them in parts, and stops when the client has disconnected.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, BodyDataStream, Bytes};
use axum::response::Response;
use futures_core::Stream;
use hyper::body::Body as _;
use tokio::sync::{mpsc, watch};

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

/// Ends the body of a response with an error when a value changes. A body that is complete already stays as it is.
pub(crate) fn end_on_change<T: Send + Sync + 'static>(response: Response, mut value: watch::Receiver<T>) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let changed = Box::pin(async move {
        // The sender is gone only if the server is, too.
        let _ = value.changed().await;
    });
    response.map(|body| Body::from_stream(RevocableBody { parts: body.into_data_stream(), changed: Some(changed) }))
}

/// A body that ends with an error when the credential of its reader has become invalid.
struct RevocableBody {
    parts: BodyDataStream,
    /// `None` after the end.
    changed: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Stream for RevocableBody {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(changed) = &mut self.changed else { return Poll::Ready(None) };
        if changed.as_mut().poll(context).is_ready() {
            self.changed = None;
            return Poll::Ready(Some(Err(axum::Error::new("the token was renewed"))));
        }
        Pin::new(&mut self.parts).poll_next(context)
    }
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
