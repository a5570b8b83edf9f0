//! Waits for real servers, with a time limit.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use cronhold_schedule::Span;

/// Time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Calls `attempt` until it returns a value. Panics after the time limit.
#[expect(clippy::disallowed_methods, reason = "cases wait for real servers, within bounds of real time")]
pub(super) fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = attempt() {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain for this: {what}");
        wait(PAUSE);
    }
}

/// Lets real time pass, by which locks expire.
pub(super) fn pass(span: Span) {
    wait(Duration::from_micros(span.micros()));
}

fn wait(time: Duration) {
    let (_sender, nothing) = mpsc::channel::<()>();
    let _ = nothing.recv_timeout(time);
}
