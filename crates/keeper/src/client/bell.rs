//! What wakes the client's thread, and how it waits: only ever for the bell, the line, or a time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::time::{ClockId, clock_gettime};

/// A bell that any thread can ring. Clones are the same bell.
#[derive(Debug, Clone)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    /// A new bell.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Rings.
    pub fn ring(&self) {
        // It fails only when it has rung as often as it can count, and then it is heard anyway.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Takes note that it has rung.
    pub(super) fn hush(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }

    /// Waits for a while, or until all is over.
    pub(super) fn rest(&self, wait: Duration, is_over: &AtomicBool) {
        let until = clock() + wait;
        while !is_over.load(Ordering::Relaxed) {
            let left = until.saturating_sub(clock());
            if left.is_zero() || watch(&mut [PollFd::new(&*self.0, PollFlags::IN)], Some(left)).is_err() {
                return;
            }
            self.hush();
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Time since the machine was started. It never steps.
pub(super) fn clock() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Waits until one of these is ready, or for so long.
pub(super) fn watch(fds: &mut [PollFd<'_>], most: Option<Duration>) -> io::Result<()> {
    let most = most.map(|most| Timespec {
        tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(most.subsec_nanos()),
    });
    match poll(fds, most.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
