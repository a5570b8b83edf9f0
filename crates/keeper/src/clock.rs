//! The keeper's clock: microseconds since the machine started, suspended time included. It is the only one in this
//! crate, so that no deadline is compared with another clock.

use rustix::time::{ClockId, Timespec, clock_gettime};

const MICROS: u64 = 1_000_000;

/// Microseconds since the machine started.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let secs = u64::try_from(time.tv_sec).unwrap_or(0);
    secs * MICROS + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000
}

/// Converts to the kernel's type.
pub(crate) fn timespec(micros: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(micros / MICROS).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(micros % MICROS * 1_000).expect("less than a second"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_advances_and_converts() {
        let before = now();
        assert!(before > 0 && now() >= before);
        assert_eq!(timespec(2_000_003), Timespec { tv_sec: 2, tv_nsec: 3_000 });
    }
}
