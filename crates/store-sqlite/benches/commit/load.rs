//! The requests of one node that only starts and ends no-op runs. All store benchmarks use it, so that their results
//! can be compared.

use std::collections::VecDeque;
use std::sync::Arc;

use cronhold_core::decision::RecordChange;
use cronhold_core::job::{Job, Program};
use cronhold_core::record::{
    ActiveRun, Actor, ClaimedRanges, Cursor, JobRecord, JobSource, JobState, LatestOutcome, Record, RecordKey,
    RecordVersion, ResolvedProgram, Run, RunOwner, ScheduleId, Transition,
};
use cronhold_core::{Args, JobId, JobUid, NodeId, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::Unit;

/// Number of jobs whose runs alternate.
pub(crate) const JOBS: usize = 1_000;

/// Generates the requests of one node: runs of all jobs in turn.
pub(crate) struct Load {
    jobs: Vec<Known>,
    next: usize,
    started: VecDeque<(usize, Arc<Run>, RecordVersion)>,
    writer: u32,
    unit: u64,
    zones: Arc<str>,
}

/// The node's cached state of a job.
struct Known {
    id: JobId,
    job_version: RecordVersion,
    cursor: (Arc<Cursor>, RecordVersion),
    state: (Arc<JobState>, RecordVersion),
}

impl Load {
    /// A node with an empty cache that has this writer number.
    pub(crate) fn new(writer: u32) -> Self {
        Self { writer, jobs: Vec::new(), next: 0, started: VecDeque::new(), unit: 0, zones: Arc::from("2026e") }
    }

    fn version(&mut self) -> RecordVersion {
        self.unit += 1;
        RecordVersion::new(self.writer, self.unit)
    }

    /// A unit that writes a job with its cursor and its state.
    pub(crate) fn put_job(&mut self, index: usize) -> Unit {
        let version = self.version();
        let id = JobId::parse(&format!("reports/prices-{index}")).expect("an id");
        let job = Arc::new(Job::new(Program::Noop { duration: Span::ZERO }));
        let uid = JobUid::from_bits(index as u128 * 0x1234_5678_9abc_def1);
        let record = JobRecord::new(id.clone(), uid, job, "UTC".into(), JobSource::Api);
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
            claimed: ClaimedRanges::default(),
        });
        let state = Arc::new(JobState::new(id.clone()));
        let records =
            [Record::Job(Arc::new(record)), Record::Cursor(Arc::clone(&cursor)), Record::JobState(Arc::clone(&state))];
        let compare = records.iter().map(|record| (record.key(), None)).collect();
        self.jobs.push(Known { id, job_version: version, cursor: (cursor, version), state: (state, version) });
        let changes = records.into_iter().map(RecordChange::Put).collect();
        Unit { version, compare, changes, take: Vec::new(), free: Vec::new() }
    }

    /// A unit that claims the next job's occurrence: it creates a run, advances the cursor and updates the job state.
    pub(crate) fn start(&mut self) -> Unit {
        let version = self.version();
        let index = self.next % self.jobs.len();
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
            (RecordKey::Pause, None),
            (RecordKey::Job(known.id.clone()), Some(known.job_version)),
            (RecordKey::JobState(known.id.clone()), Some(known.state.1)),
            (RecordKey::Cursor(known.id.clone(), cursor.schedule.clone()), Some(known.cursor.1)),
            (RecordKey::Run(run.id), None),
        ];
        known.cursor = (Arc::new(cursor), version);
        known.state = (Arc::new(state), version);
        self.started.push_back((index, Arc::clone(&run), version));
        let changes = vec![
            RecordChange::Put(Record::Run(run)),
            RecordChange::Put(Record::Cursor(Arc::clone(&known.cursor.0))),
            RecordChange::Put(Record::JobState(Arc::clone(&known.state.0))),
        ];
        Unit { version, compare, changes, take: Vec::new(), free: Vec::new() }
    }

    /// A unit that ends the oldest active run: it writes the final state, and updates the job state.
    pub(crate) fn end(&mut self) -> Unit {
        let version = self.version();
        let (index, run, run_version) = self.started.pop_front().expect("as many start as end");
        let known = &mut self.jobs[index];
        let mut run = (*run).clone();
        run.state = State::Success;
        run.due = None;
        let at = run.log[0].at.plus(Span::from_micros(1_700));
        run.log.push(Transition::entered(at, State::Success, Actor::Program));
        let mut state = (*known.state.0).clone();
        state.forget(run.id);
        state.kept.success += 1;
        let outcomes = state.outcomes.get_or_insert_default();
        outcomes.success = Some(LatestOutcome { run: run.id, at });
        let compare = vec![
            (RecordKey::Job(known.id.clone()), Some(known.job_version)),
            (RecordKey::JobState(known.id.clone()), Some(known.state.1)),
            (RecordKey::Run(run.id), Some(run_version)),
        ];
        known.state = (Arc::new(state), version);
        let changes = vec![
            RecordChange::Put(Record::Run(Arc::new(run))),
            RecordChange::Put(Record::JobState(Arc::clone(&known.state.0))),
        ];
        Unit { version, compare, changes, take: Vec::new(), free: Vec::new() }
    }
}

fn run(known: &Known, state: &mut JobState, nominal: Instant) -> Run {
    let uid = JobUid::from_bits(u128::from(state.next_number) << 64 | 7);
    let schedule = known.cursor.0.schedule.clone();
    let id = RunId::derived(uid, known.id.as_str(), nominal, 1);
    let at = nominal.plus(Span::from_micros(834));
    let entered = |state| Transition::entered(at, state, Actor::Schedule);
    state.active.push(ActiveRun { run: id, args: Args::new().digest(), target: None });
    Run {
        schedule: Some(schedule),
        state: State::Starting,
        owner: Some(RunOwner { node: NodeId::from_bits(0x1111_2222_3333_4444_5555_6666_7777_8888), incarnation: 3 }),
        work: Some(ResolvedProgram::Noop(Span::ZERO)),
        due: Some(at.plus(Span::from_secs(10))),
        log: vec![entered(State::Waiting), entered(State::Starting)],
        ..Run::blank(id, RunNumber(state.take_number().0), known.id.clone(), uid, nominal)
    }
}
