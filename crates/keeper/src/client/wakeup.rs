//! What wakes the client's thread, and how the thread waits: for a notification, the connection, or a time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::time::{ClockId, clock_gettime};

/// Wakes a thread that waits in `poll`. Any thread can notify it, and clones share it.
#[derive(Debug, Clone)]
pub struct Wakeup(Arc<OwnedFd>);

impl Wakeup {
    /// A wakeup that was not notified. Fails if no file descriptor is left.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Wakes the thread that waits, or the next one that does.
    pub fn notify(&self) {
        // It fails only if the counter is full, and then the thread wakes anyway.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it count as not notified.
    pub(super) fn clear(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }

    /// Waits for a while, or until the client is dropped.
    pub(super) fn rest(&self, wait: Duration, is_stopping: &AtomicBool) {
        let until = clock() + wait;
        while !is_stopping.load(Ordering::Relaxed) {
            let left = until.saturating_sub(clock());
            if left.is_zero() || poll_ready(&mut [PollFd::new(&*self.0, PollFlags::IN)], Some(left)).is_err() {
                return;
            }
            self.clear();
        }
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Time since the machine started, suspended time included. It never steps.
pub(super) fn clock() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Time since the machine started, without suspended time.
pub(super) fn awake_clock() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Waits until one of these is ready, or until the time has passed.
pub(super) fn poll_ready(fds: &mut [PollFd<'_>], most: Option<Duration>) -> io::Result<()> {
    let most = most.map(|most| Timespec {
        tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(most.subsec_nanos()),
    });
    match poll(fds, most.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
