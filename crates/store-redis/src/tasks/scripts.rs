//! The scripts for tasks, and the client that calls them with the prefix and packed arguments.

use std::fmt;
use std::sync::{LazyLock, Mutex};

use cronhold_schedule::Instant;
use cronhold_store::{ClockFn, Fault, lock_mutex};
use redis::Value;

use super::keys::TaskKeys;
use crate::connections::{RedisConnections, Script};
use crate::pack::Pack;
use crate::reply;

macro_rules! script {
    ($name:ident, $($part:literal),+) => {
        pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(&[include_str!("scripts/facts.lua"), $(include_str!($part)),+]));
    };
}

script!(FETCH, "scripts/fetch.lua");
script!(COMMIT, "scripts/windows.lua", "scripts/commit.lua");
script!(WINDOWS, "scripts/windows.lua", "scripts/read_windows.lua");
script!(ITEMS, "scripts/read_items.lua");
script!(PAGE, "scripts/page.lua");

/// Calls the scripts for tasks of one store.
#[derive(Debug)]
pub(super) struct TaskScripts {
    connections: RedisConnections,
    keys: TaskKeys,
    /// Selects the server in a Cluster.
    slot_key: [String; 1],
    clock: ServerClock,
    /// A clock that tests advance, in place of the one of the server.
    test_clock: TestClockFn,
}

/// A clock of a test, if there is one.
pub(super) struct TestClockFn(pub(super) Option<ClockFn>);

impl fmt::Debug for TestClockFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "of a test" } else { "of the server" })
    }
}

/// The clock of the server: its time in the last reply, in microseconds, and when the reply arrived.
#[derive(Debug, Default)]
struct ServerClock(Mutex<Option<(i64, tokio::time::Instant)>>);

impl ServerClock {
    /// The time now; `None` before the first reply.
    fn now(&self) -> Option<Instant> {
        let (micros, arrived) = (*lock_mutex(&self.0))?;
        let since = i64::try_from(arrived.elapsed().as_micros()).unwrap_or(i64::MAX);
        Some(Instant::from_micros(micros.saturating_add(since)))
    }

    fn set(&self, micros: i64) {
        *lock_mutex(&self.0) = Some((micros, tokio::time::Instant::now()));
    }
}

impl TaskScripts {
    pub(super) fn new(connections: RedisConnections, keys: TaskKeys, test_clock: Option<ClockFn>) -> Self {
        let slot_key = [keys.of("jobs")];
        let clock = ServerClock::default();
        Self { connections, keys, slot_key, clock, test_clock: TestClockFn(test_clock) }
    }

    pub(super) fn keys(&self) -> &TaskKeys {
        &self.keys
    }

    pub(super) fn connections(&self) -> &RedisConnections {
        &self.connections
    }

    /// Calls a script with a packed argument.
    pub(super) async fn call(&self, script: &'static LazyLock<Script>, arg: Pack) -> Result<Value, Fault> {
        let args = vec![self.keys.prefix().as_bytes().to_vec(), arg.into_bytes()];
        self.connections.call_script(script, &self.slot_key, args).await
    }

    /// Notes the time in a reply, which begins with seconds and microseconds.
    pub(super) fn note_time(&self, secs: Value, micros: Value) -> Result<(), Fault> {
        let number = |value: Value| -> Result<i64, Fault> {
            let text = reply::text(value)?;
            text.parse().map_err(|_| reply::unexpected("a time", &Value::SimpleString(text)))
        };
        let server = number(secs)?.saturating_mul(1_000_000).saturating_add(number(micros)?);
        self.clock.set(server);
        Ok(())
    }

    /// The time by the clock of the server, computed from its last reply. Asks the server before the first one.
    pub(super) async fn now(&self) -> Result<Instant, Fault> {
        match (&self.test_clock.0, self.clock.now()) {
            (Some(clock), _) => Ok(clock()),
            (None, Some(now)) => Ok(now),
            (None, None) => self.time().await,
        }
    }

    /// The present time by the clock of the server.
    pub(super) async fn time(&self) -> Result<Instant, Fault> {
        if let Some(clock) = &self.test_clock.0 {
            return Ok(clock());
        }
        let mut reply = reply::list(self.connections.request_one(redis::cmd("TIME")).await?)?.into_iter();
        let mut next = || reply.next().unwrap_or(Value::Nil);
        self.note_time(next(), next())?;
        Ok(self.clock.now().unwrap_or_default())
    }
}
