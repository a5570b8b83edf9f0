//! The machine without a node: its disk, the connection to its store, its timers, and how fast it starts programs. All other figures have to be
//! compared with these. Each loop yields between two rounds, so that a signal can end it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use cronhold_engine::MachineClock;
use cronhold_schedule::Span;
use cronhold_store::{Fault, Store};
use tokio::task::yield_now;

use super::samples::{LoopLimit, SampleSet, Stopwatch, number};

/// Programs that are in flight at once.
pub const IN_FLIGHT: usize = 64;
/// Bytes of one durable write.
const WRITE_BYTES: usize = 512;
/// Durable writes that are measured. A file system in memory would do millions.
const WRITES_MAX: usize = 100_000;
/// The requested length of a timer. It is not a multiple of any tick.
const TIMER: Span = Span::from_micros(5_300);

/// Appends 512 bytes to a new file and makes them durable (fdatasync), one write after the other. Returns the duration
/// of each.
pub async fn time_durable_writes(path: &Path, limit: LoopLimit) -> io::Result<SampleSet> {
    let mut file = File::create(path)?;
    let (begin, mut millis) = (Stopwatch::start(), Vec::new());
    while !limit.is_reached(millis.len(), begin) && millis.len() < WRITES_MAX {
        let write = Stopwatch::start();
        file.write_all(&[7; WRITE_BYTES])?;
        file.sync_data()?;
        millis.push(write.millis());
        yield_now().await;
    }
    Ok(SampleSet::new(millis))
}

/// Sets timers on an idle executor, one after the other. Returns how late each of them expires.
pub async fn time_timers(clock: &dyn MachineClock, limit: LoopLimit) -> SampleSet {
    let (begin, mut late) = (Stopwatch::start(), Vec::new());
    while !limit.is_reached(late.len(), begin) {
        let before = clock.uptime();
        clock.sleep(TIMER).await;
        late.push(number(clock.uptime().minus(before).minus(TIMER).micros()) / 1_000.0);
    }
    SampleSet::new(late)
}

/// Requests the time of the store, one request after the other. Returns the duration of each.
pub async fn time_round_trips(store: &dyn Store, limit: LoopLimit) -> Result<SampleSet, Fault> {
    let (begin, mut millis) = (Stopwatch::start(), Vec::new());
    while !limit.is_reached(millis.len(), begin) {
        let request = Stopwatch::start();
        store.time().await?;
        millis.push(request.millis());
    }
    Ok(SampleSet::new(millis))
}

/// Starts programs in a bare loop that waits for their ends and records nothing, 64 in flight. Returns how many it ran
/// per second.
pub async fn measure_spawn_rate(limit: LoopLimit, command: impl Fn() -> Command) -> io::Result<f64> {
    let (begin, mut started) = (Stopwatch::start(), 0);
    let mut running: VecDeque<Child> = VecDeque::new();
    while !limit.is_reached(started, begin) {
        if running.len() >= IN_FLIGHT {
            wait_for(running.pop_front())?;
        }
        running.push_back(command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        started += 1;
        yield_now().await;
    }
    running.into_iter().try_for_each(|child| wait_for(Some(child)))?;
    Ok(number(started as u64) / begin.seconds())
}

/// Waits until a program has ended. How it ended does not matter.
pub fn wait_for(child: Option<Child>) -> io::Result<()> {
    child.map_or(Ok(()), |mut child| child.wait().map(|_| ()))
}
