//! Cost of a no-op run for the writer: batches of 256 units, half of which start a run and half of which end one, for
//! 1,000 jobs. A plain loop that appends 512 bytes and syncs them shows the limit of the disk.
//!
//! Prints one table. Arguments: number of batches (400), and how many of them are in flight at the same time (3).

mod load;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant as Moment};

use cronhold_schedule::{Instant, ZoneRegistry};
use cronhold_store::{Pending, Store, UnitReceipt, UnitRefusal};
use cronhold_store_sqlite::{Options, SqliteStore};
use load::{JOBS, Load};

const UNITS_A_BATCH: usize = 256;
const BATCHES: usize = 400;
const DEPTH: usize = 3;
const SYNCS: u32 = 2_000;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse().ok());
    let (batches, depth) = (numbers.next().unwrap_or(BATCHES), numbers.next().unwrap_or(DEPTH));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("commit-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let bare = bare_syncs(&folder.join("bare"));
    println!("bare write of 512 bytes and fdatasync  {:>9.1} µs", micros(bare) / f64::from(SYNCS));
    commits(&folder.join("bench.db"), batches, depth);
    fs::remove_dir_all(&folder).expect("the directory is removed");
}

fn commits(path: &Path, batches: usize, depth: usize) {
    let clock = Arc::new(|| Instant::from_secs(1_800_000_000));
    let options = Options { clock, zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
    let store = SqliteStore::open(path, options).expect("a store");
    let mut load = Load::new(1);
    let jobs = (0..JOBS).map(|index| load.put_job(index)).collect();
    check(&wait(&mut store.commit(jobs)));
    let half = UNITS_A_BATCH / 2;
    check(&wait(&mut store.commit((0..half).map(|_| load.start()).collect())));

    let (begun, before, written) = (now(), writer_time(), bytes_written());
    let commits = wait(&mut store.health()).commits;
    let mut on_their_way: VecDeque<Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>>> = VecDeque::new();
    let mut building = Duration::ZERO;
    for _ in 0..batches {
        let asked = now();
        let units = (0..UNITS_A_BATCH).map(|index| if index % 2 == 0 { load.start() } else { load.end() }).collect();
        building += asked.elapsed();
        let mut commit = store.commit(units);
        // The first poll encodes the commit and queues it.
        assert!(commit.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        on_their_way.push_back(commit);
        if on_their_way.len() >= depth {
            check(&wait(on_their_way.front_mut().expect("there is one")));
            on_their_way.pop_front();
        }
    }
    on_their_way.iter_mut().for_each(|commit| check(&wait(commit)));
    let (took, writer, written) = (begun.elapsed(), writer_time() - before, bytes_written() - written);
    let commits = wait(&mut store.health()).commits - commits;
    let (units, runs) = ((batches * UNITS_A_BATCH) as f64, (batches * half) as f64);
    println!("runs                                   {runs:>9.0}, {:.0} a second", runs / took.as_secs_f64());
    println!("wall clock                             {:>9.1} µs a unit", micros(took) / units);
    println!(
        "writer's thread on the processor       {:>9.1} µs a unit, {:.1} µs a run",
        micros(writer) / units,
        micros(writer) / runs
    );
    println!("making the units                       {:>9.1} µs a unit", micros(building) / units);
    println!("commits                                {commits:>9}, {:.1} units each", units / commits as f64);
    println!("bytes written                          {:>9.0} a run", written as f64 / runs);
}

fn check(results: &[Result<UnitReceipt, UnitRefusal>]) {
    assert!(results.iter().all(Result::is_ok), "{:?}", results.iter().find(|result| result.is_err()));
}

fn bare_syncs(path: &Path) -> Duration {
    let mut file = File::create(path).expect("a file");
    file.write_all(&vec![0; 512 * SYNCS as usize]).expect("room");
    file.sync_all().expect("a sync");
    let mut file = File::options().write(true).open(path).expect("the file");
    let begun = now();
    for _ in 0..SYNCS {
        file.write_all(&[7; 512]).expect("room");
        file.sync_data().expect("a sync");
    }
    begun.elapsed()
}

/// CPU time of the writer thread.
fn writer_time() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let mine = tasks
        .map(|task| task.path())
        .filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "sqlite writer"));
    let nanos = mine.filter_map(|task| fs::read_to_string(task.join("schedstat")).ok());
    let nanos = nanos.filter_map(|text| text.split(' ').next().and_then(|number| number.parse().ok()));
    nanos.map(Duration::from_nanos).sum()
}

fn bytes_written() -> u64 {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn now() -> Moment {
    Moment::now()
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send + '_>>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
