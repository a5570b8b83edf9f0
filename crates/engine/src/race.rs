//! Waits for the first of two futures. If both are ready, the first argument wins, so that the order of events is
//! deterministic.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// The output of the future that was ready first.
pub(crate) enum First<A, B> {
    /// The output of the first argument.
    Left(A),
    /// The output of the second argument.
    Right(B),
}

/// Waits for the first of two futures, and drops the other.
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
