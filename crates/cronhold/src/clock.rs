//! The clocks of the machine. Waits use timers of the kernel, which count suspended time and have a resolution of
//! microseconds. The timers of the executor count in milliseconds, and are one late on average.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard};

use cronhold_engine::MachineClock;
use cronhold_schedule::{Instant, Span};
use cronhold_store::Pending;
use cronhold_store::lock_mutex;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

type TimerFd = AsyncFd<OwnedFd>;

/// The clocks of the machine. Waits on the executor in which it was created.
pub struct SystemClock {
    /// Timers that are not in use. There are as many as were ever needed at once, which is a handful.
    idle: Mutex<Vec<TimerFd>>,
}

impl SystemClock {
    /// Must be called inside the executor.
    pub fn new() -> io::Result<Self> {
        // One is created now, so that a failure is reported at the start.
        Ok(Self { idle: Mutex::new(vec![timer()?]) })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<TimerFd>> {
        lock_mutex(&self.idle)
    }

    async fn wait(&self, span: Span) -> io::Result<()> {
        let taken = self.idle().pop();
        let armed = ArmedTimer { timer: Some(taken.map_or_else(timer, Ok)?), clock: self };
        let timer = armed.timer.as_ref().expect("it is returned only on drop");
        let once = Itimerspec { it_interval: timespec(Span::ZERO), it_value: timespec(span) };
        timerfd_settime(timer.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        loop {
            // After an earlier wait that was dropped, the timer can be readable without having expired.
            let mut ready = timer.readable().await?;
            let expired = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut [0; 8])?));
            if let Ok(expired) = expired {
                return expired.map(|_| ());
            }
        }
    }
}

impl MachineClock for SystemClock {
    fn now(&self) -> Instant {
        now()
    }

    fn uptime(&self) -> Span {
        uptime()
    }

    fn sleep(&self, span: Span) -> Pending<'_, ()> {
        Box::pin(async move {
            // A timer that is set to zero never expires.
            if !span.is_zero() && self.wait(span).await.is_err() {
                // Without a timer the wait ends early. Callers check the time anyway.
                tokio::task::yield_now().await;
            }
        })
    }
}

/// A timer in use. It returns to the idle ones when it is dropped, whether or not it has expired.
struct ArmedTimer<'a> {
    timer: Option<TimerFd>,
    clock: &'a SystemClock,
}

impl Drop for ArmedTimer<'_> {
    fn drop(&mut self) {
        self.clock.idle().extend(self.timer.take());
    }
}

/// The current time of day.
#[expect(clippy::disallowed_methods, reason = "the binary is where the clock is read")]
pub fn now() -> Instant {
    Instant::from_micros(jiff::Timestamp::now().as_microsecond())
}

/// Time since the machine started, suspended time included.
pub fn uptime() -> Span {
    let time = clock_gettime(ClockId::Boottime);
    Span::from_secs(time.tv_sec.unsigned_abs()).plus(Span::from_micros(time.tv_nsec.unsigned_abs() / 1_000))
}

fn timer() -> io::Result<TimerFd> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    AsyncFd::new(timerfd_create(TimerfdClockId::Boottime, flags)?)
}

fn timespec(span: Span) -> Timespec {
    let part = i64::try_from(span.micros() % 1_000_000).unwrap_or(0);
    Timespec { tv_sec: i64::try_from(span.secs()).unwrap_or(i64::MAX), tv_nsec: part * 1_000 }
}

impl fmt::Debug for SystemClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SystemClock({} idle)", self.idle().len())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    fn in_executor(test: impl AsyncFnOnce(SystemClock)) {
        let executor = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("an executor");
        executor.block_on(async { test(SystemClock::new().expect("a timer")).await });
    }

    #[test]
    fn sleep_waits_at_least_as_long_as_requested() {
        in_executor(async |clock| {
            for micros in [0, 1, 300, 2_500] {
                let (span, before) = (Span::from_micros(micros), clock.uptime());
                clock.sleep(span).await;
                assert!(clock.uptime().minus(before) >= span, "{span}");
            }
            assert_eq!(clock.idle().len(), 1, "one timer served them all");
        });
    }

    #[test]
    fn dropped_wait_does_not_end_the_next_wait_early() {
        in_executor(async |clock| {
            for _ in 0..100 {
                {
                    let mut given_up = pin!(clock.sleep(Span::from_micros(20)));
                    poll_fn(|context| {
                        let _ = given_up.as_mut().poll(context);
                        Poll::Ready(())
                    })
                    .await;
                }
                let before = clock.uptime();
                clock.sleep(Span::from_micros(200)).await;
                assert!(clock.uptime().minus(before) >= Span::from_micros(200));
            }
            assert_eq!(clock.idle().len(), 1);
        });
    }
}
