//! What a no-op run costs the writer: batches of 256 units, half of which start a run and half of which end one, for
//! 1,000 jobs. Beside it a bare loop that appends 512 bytes and syncs them, because that is what the disk gives.
//!
//! Prints one table. Arguments: how many batches (400), and how many of them are on their way at once (3).

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant as Moment};

use cronhold_core::decision::Change;
use cronhold_core::job::{Job, Program};
use cronhold_core::record::{
    Actor, Cursor, Identity, JobRecord, JobState, Key, Outcome, Owner, Record, Run, ScheduleId, Source, Transition,
    Version, Work,
};
use cronhold_core::{Args, JobId, JobUid, NodeId, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span, Zones};
use cronhold_store::{Committed, Pending, Refusal, Store, Unit};
use cronhold_store_sqlite::{Options, SqliteStore};

const JOBS: usize = 1_000;
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
    fs::remove_dir_all(&folder).expect("the folder goes");
}

/// What a store is asked, as one node would: runs of all jobs in turn.
struct Load {
    jobs: Vec<Known>,
    next: usize,
    started: VecDeque<(usize, Arc<Run>, Version)>,
    unit: u64,
    zones: Arc<str>,
}

/// What the node remembers of a job.
struct Known {
    id: JobId,
    job_version: Version,
    cursor: (Arc<Cursor>, Version),
    state: (Arc<JobState>, Version),
    identity: (Identity, Option<Version>),
}

impl Load {
    fn version(&mut self) -> Version {
        self.unit += 1;
        Version::new(1, self.unit)
    }

    /// A job with its cursor and its set of runs.
    fn put_job(&mut self, index: usize) -> Unit {
        let version = self.version();
        let id = JobId::parse(&format!("reports/prices-{index}")).expect("an id");
        let job = Arc::new(Job::new(Program::Noop { duration: Span::ZERO }));
        let uid = JobUid::from_bits(index as u128 * 0x1234_5678_9abc_def1);
        let record = JobRecord::new(id.clone(), uid, job, "UTC".into(), Source::Api);
        let cursor = Arc::new(Cursor {
            job: id.clone(),
            schedule: ScheduleId::parse("4f1d2c3b5a697887").expect("an id"),
            since: Instant::EPOCH,
            last: None,
            next: Some(Instant::from_secs(1_800_000_000)),
            wake: Some(Instant::from_secs(1_800_000_000)),
            revision: 1,
            zones: Arc::clone(&self.zones),
            generation: 0,
            follows: None,
            at_start: false,
            streak: None,
        });
        let state = Arc::new(JobState::new(id.clone()));
        let identity = Identity::new(id.clone(), Args::new());
        let records =
            [Record::Job(Arc::new(record)), Record::Cursor(Arc::clone(&cursor)), Record::JobState(Arc::clone(&state))];
        let compare = records.iter().map(|record| (record.key(), None)).collect();
        self.jobs.push(Known {
            id,
            job_version: version,
            cursor: (cursor, version),
            state: (state, version),
            identity: (identity, None),
        });
        let changes = records.into_iter().map(Change::Put).collect();
        Unit { version, compare, changes, take: Vec::new(), free: Vec::new() }
    }

    /// The next job's occurrence is claimed: a run, the cursor moves on, the set of runs grows.
    fn start(&mut self) -> Unit {
        let version = self.version();
        let index = self.next % JOBS;
        self.next += 1;
        let known = &mut self.jobs[index];
        let nominal = known.cursor.0.next.expect("it always has a next");
        let mut cursor = (*known.cursor.0).clone();
        cursor.last = cursor.next;
        cursor.next = Some(nominal.plus(Span::from_secs(1)));
        cursor.wake = cursor.next;
        let mut state = (*known.state.0).clone();
        let run = Arc::new(run(known, &mut state, nominal));
        let compare = vec![
            (Key::Pause, None),
            (Key::Job(known.id.clone()), Some(known.job_version)),
            (Key::JobState(known.id.clone()), Some(known.state.1)),
            (Key::Cursor(known.id.clone(), cursor.schedule.clone()), Some(known.cursor.1)),
            (Key::Run(run.id), None),
        ];
        known.cursor = (Arc::new(cursor), version);
        known.state = (Arc::new(state), version);
        self.started.push_back((index, Arc::clone(&run), version));
        let changes = vec![
            Change::Put(Record::Run(run)),
            Change::Put(Record::Cursor(Arc::clone(&known.cursor.0))),
            Change::Put(Record::JobState(Arc::clone(&known.state.0))),
        ];
        Unit { version, compare, changes, take: Vec::new(), free: Vec::new() }
    }

    /// The run that started first ends: it becomes final, the set of runs shrinks, conditions can see it.
    fn end(&mut self) -> Unit {
        let version = self.version();
        let (index, run, run_version) = self.started.pop_front().expect("as many start as end");
        let known = &mut self.jobs[index];
        let mut run = (*run).clone();
        run.state = State::Success;
        run.due = None;
        let at = run.log[0].at.plus(Span::from_micros(1_700));
        run.log.push(Transition { at, state: State::Success, actor: Actor::Program, message: String::new() });
        let mut state = (*known.state.0).clone();
        state.forget(run.id);
        state.kept.success += 1;
        known.identity.0.set(State::Success, Some(Outcome { run: run.id, at }));
        let compare = vec![
            (Key::Job(known.id.clone()), Some(known.job_version)),
            (Key::JobState(known.id.clone()), Some(known.state.1)),
            (Key::Identity(known.id.clone(), Args::new()), known.identity.1),
            (Key::Run(run.id), Some(run_version)),
        ];
        known.state = (Arc::new(state), version);
        known.identity.1 = Some(version);
        let changes = vec![
            Change::Put(Record::Run(Arc::new(run))),
            Change::Put(Record::JobState(Arc::clone(&known.state.0))),
            Change::Put(Record::Identity(Arc::new(known.identity.0.clone()))),
        ];
        Unit { version, compare, changes, take: Vec::new(), free: Vec::new() }
    }
}

fn run(known: &Known, state: &mut JobState, nominal: Instant) -> Run {
    let uid = JobUid::from_bits(u128::from(state.next_number) << 64 | 7);
    let schedule = known.cursor.0.schedule.clone();
    let id = RunId::derived(uid, known.id.as_str(), nominal, 1);
    let at = nominal.plus(Span::from_micros(834));
    let entered = |state| Transition { at, state, actor: Actor::Schedule, message: String::new() };
    state.active.push(cronhold_core::record::Active { run: id, args: Args::new().digest(), target: None });
    Run {
        schedule: Some(schedule),
        state: State::Starting,
        owner: Some(Owner { node: NodeId::from_bits(0x1111_2222_3333_4444_5555_6666_7777_8888), incarnation: 3 }),
        work: Some(Work::Noop(Span::ZERO)),
        due: Some(at.plus(Span::from_secs(10))),
        log: vec![entered(State::Waiting), entered(State::Starting)],
        ..Run::blank(id, RunNumber(state.take_number().0), known.id.clone(), uid, nominal)
    }
}

fn commits(path: &Path, batches: usize, depth: usize) {
    let clock = Arc::new(|| Instant::from_secs(1_800_000_000));
    let options = Options { clock, zones: Arc::new(Zones::bundled()), size_max: None };
    let store = SqliteStore::open(path, options).expect("a store");
    let mut load = Load { jobs: Vec::new(), next: 0, started: VecDeque::new(), unit: 0, zones: Arc::from("2026e") };
    let jobs = (0..JOBS).map(|index| load.put_job(index)).collect();
    check(&wait(&mut store.commit(jobs)));
    let half = UNITS_A_BATCH / 2;
    check(&wait(&mut store.commit((0..half).map(|_| load.start()).collect())));

    let (begun, before, written) = (now(), writer_time(), bytes_written());
    let commits = wait(&mut store.health()).commits;
    let mut on_their_way: VecDeque<Pending<'_, Vec<Result<Committed, Refusal>>>> = VecDeque::new();
    let mut building = Duration::ZERO;
    for _ in 0..batches {
        let asked = now();
        let units = (0..UNITS_A_BATCH).map(|index| if index % 2 == 0 { load.start() } else { load.end() }).collect();
        building += asked.elapsed();
        let mut commit = store.commit(units);
        // The first look encodes it and puts it into the queue.
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

fn check(results: &[Result<Committed, Refusal>]) {
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

/// How long the writer's thread has been on a processor.
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
