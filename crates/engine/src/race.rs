//! Waiting for the first of two things. The first argument goes first when both are there, so that the order of events
//! never depends on chance.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// Which of two came first.
pub(crate) enum First<A, B> {
    /// The first argument.
    Left(A),
    /// The second.
    Right(B),
}

/// Waits for the first of two; the other is dropped.
pub(crate) async fn race<A, B>(left: impl Future<Output = A>, right: impl Future<Output = B>) -> First<A, B> {
    let (mut left, mut right) = (pin!(left), pin!(right));
    poll_fn(|context| {
        if let Poll::Ready(value) = left.as_mut().poll(context) {
            return Poll::Ready(First::Left(value));
        }
        right.as_mut().poll(context).map(First::Right)
    })
    .await
}
