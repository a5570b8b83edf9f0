//! The memory and the CPU usage of a process.

use std::fs;

use cronhold_daemon::bench::samples::{number, seconds};
use cronhold_daemon::clock::SystemClock;
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;

use crate::rig::block_on;

/// A memory value of a process in megabytes, from a line of /proc/PID/status.
pub(crate) fn memory(pid: u32, line: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let value = text.lines().find_map(|text| text.strip_prefix(line)?.split_whitespace().next()?.parse().ok());
    number(value.unwrap_or(0)) / 1_024.0
}

/// The CPU usage of a process over some time, in percent of one core.
pub(crate) fn busy_percent(pid: u32, span: Span) -> f64 {
    block_on(async {
        let clock = SystemClock::new().expect("a timer");
        let (before, begin) = (busy_ticks(pid), clock.uptime());
        clock.sleep(span).await;
        // A tick is a hundredth of a second on Linux.
        number(busy_ticks(pid) - before) / seconds(clock.uptime().minus(begin))
    })
}

fn busy_ticks(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    // The name in parentheses may contain any characters. User and system time are the 14th and 15th field.
    let after_name = text.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}
