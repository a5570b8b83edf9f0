//! Waits for conditions of real processes, with a time limit.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Time limit of every wait in tests.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Servers of tests listen on these ports. Linux gives ports from 32768 to outgoing connections.
const FIRST_PORT: u32 = 11_000;
const PORTS: u32 = 20_000;
/// Ports that one test process uses before it comes to those of the next.
const PORTS_OF_PROCESS: u32 = 16;

/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(5);

/// Calls `look` until it returns a value. Panics after the time limit.
#[expect(clippy::disallowed_methods, reason = "tests wait for real processes, within bounds of real time")]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain for this: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// A port of this machine that nothing listens on. The system never gives it to an outgoing connection, and other test
/// processes that run at the same time choose from other ports, so it stays free until a server takes it.
pub fn free_port() -> u16 {
    static CHOSEN: AtomicU32 = AtomicU32::new(0);
    for _ in 0..PORTS {
        let number = std::process::id().wrapping_mul(PORTS_OF_PROCESS) + CHOSEN.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(FIRST_PORT + number % PORTS).expect("the range is within the ports");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port from {FIRST_PORT} is free")
}
