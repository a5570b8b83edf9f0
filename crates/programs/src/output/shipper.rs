//! Copies the output of programs from their files into the store: a few times a second while they run, and the rest
//! when they have ended, before the end is reported to the node. It has a separate thread, because it reads files. The
//! node never waits for it. While the store is unreachable or the budget is spent it waits, and loses nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use cronhold_core::RunId;
use cronhold_core::record::OutputSummary;
use cronhold_engine::MachineClock;
use cronhold_keeper::{OutputLimits, fail};
use cronhold_schedule::Span;
use cronhold_store::{Fault, Store};
use tokio::task::JoinSet;

use super::budget::OutputBudget;
use super::{
    EDGE, OutputFile, OutputPiece, OutputProgress, PIECE_MAX, Restart, RestartLog, SecretMask, keeper_output,
    stored_limits,
};
use crate::event::ProgramEvent;
use crate::process::UnstoredOutput;
use crate::runner::LocalRunner;

/// Interval between two checks of the files of running programs.
const POLL_EVERY: Span = Span::from_millis(250);
/// The wait when no program runs; the runner ends it when one does.
const IDLE_WAIT: Span = Span::from_secs(60);
/// Appends in flight, and their bytes. The last one may exceed the bytes.
const PIECES_MAX: usize = 256;
const BYTES_MAX: usize = 512 << 10;
/// Programs that have ended and whose outputs are worked on at the same time.
const FINISHING_MAX: usize = 1_024;
/// The first and the longest wait after the store failed.
const RETRY_MIN: Span = Span::from_millis(100);
const RETRY_MAX: Span = Span::from_secs(5);

/// The thread that stores outputs. Dropping this ends it.
#[derive(Debug)]
pub struct OutputShipper {
    runner: Arc<LocalRunner>,
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What runs in the thread.
struct ShipperLoop {
    data: PathBuf,
    store: Arc<dyn Store>,
    runner: Arc<LocalRunner>,
    clock: Box<dyn MachineClock>,
    is_stopping: Arc<AtomicBool>,
    /// How far each output is stored; `None` if the store has to be queried.
    progress: BTreeMap<RunId, Option<OutputProgress>>,
    /// The secrets of runs, read once: what is stored of an output depends on them.
    secrets: BTreeMap<RunId, Arc<SecretMask>>,
    /// Where the files of programs that truncated theirs begin in the stored output.
    restarts: RestartLog,
    /// Outputs of programs that have ended, with their length if it is known.
    finishing: BTreeMap<RunId, Option<u64>>,
    /// Runs with a request to the store in flight.
    in_flight: BTreeSet<RunId>,
    requests: JoinSet<StoreReply>,
    bytes_in_flight: usize,
    budget: OutputBudget,
    /// How much of each output is stored.
    limits: OutputLimits,
    /// Running programs whose files are checked as soon as possible, because they probably have more.
    eager: BTreeSet<RunId>,
    /// When the files of all running programs are checked next.
    poll_at: Span,
    /// When the messages of all running plug-ins are read next.
    read_at: Span,
    /// After a failure of the store: when it is tried again, and how long this wait is.
    retry: Option<(Span, Span)>,
}

/// An output that may have something to store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// Bytes that are stored. Outputs with few of them come first.
    stored: u64,
    run: RunId,
    kind: CandidateKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CandidateKind {
    /// The program has ended; the length of its output if it is known.
    Ended(Option<u64>),
    Running,
}

/// The result of a request to the store: how far an output is stored; `None` if the store has to be queried again.
struct StoreReply {
    run: RunId,
    bytes: usize,
    progress: Result<Option<OutputProgress>, Fault>,
}

impl OutputShipper {
    /// Starts the thread for the outputs in a data directory. The clock is made inside the thread's executor.
    pub fn start<C: MachineClock + 'static>(
        data: PathBuf,
        store: Arc<dyn Store>,
        runner: Arc<LocalRunner>,
        make_clock: impl FnOnce() -> io::Result<C> + Send + 'static,
    ) -> io::Result<Self> {
        let is_stopping = Arc::new(AtomicBool::new(false));
        let (loop_runner, loop_stopping) = (Arc::clone(&runner), Arc::clone(&is_stopping));
        let executor = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let work = move || {
            executor.block_on(async {
                // The executor needed the same resources as a clock, and got them.
                let Ok(clock) = make_clock() else { return };
                ShipperLoop::new(data, store, loop_runner, Box::new(clock), loop_stopping).run().await;
            });
        };
        let thread = std::thread::Builder::new().name("outputs".to_owned()).spawn(work)?;
        Ok(Self { runner, is_stopping, thread: Some(thread) })
    }
}

impl Drop for OutputShipper {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.runner.notify_output();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked is over as well.
            let _ = thread.join();
        }
    }
}

impl ShipperLoop {
    fn new(
        data: PathBuf,
        store: Arc<dyn Store>,
        runner: Arc<LocalRunner>,
        clock: Box<dyn MachineClock>,
        is_stopping: Arc<AtomicBool>,
    ) -> Self {
        let budget = OutputBudget::new(clock.uptime(), store.is_shared());
        let limits = stored_limits(store.limits().output);
        Self {
            restarts: RestartLog::open(&data),
            data,
            store,
            runner,
            clock,
            is_stopping,
            progress: BTreeMap::new(),
            secrets: BTreeMap::new(),
            finishing: BTreeMap::new(),
            in_flight: BTreeSet::new(),
            requests: JoinSet::new(),
            bytes_in_flight: 0,
            budget,
            limits,
            eager: BTreeSet::new(),
            poll_at: Span::ZERO,
            read_at: Span::ZERO,
            retry: None,
        }
    }

    async fn run(mut self) {
        while !self.is_stopping.load(Ordering::Relaxed) {
            let uptime = self.clock.uptime();
            let room = FINISHING_MAX.saturating_sub(self.finishing.len());
            for UnstoredOutput { run, length } in self.runner.take_unstored(room) {
                let length = self.finish_messages(run, length);
                self.finishing.insert(run, length);
            }
            self.read_messages(uptime);
            if self.retry.is_none_or(|(until, _)| until <= uptime) {
                self.send_some(uptime);
            }
            self.wait().await;
        }
    }

    /// Reads what running plug-ins have written, a few times a second, whether or not their text can be stored now: the
    /// keeper keeps only a part of it.
    fn read_messages(&mut self, uptime: Span) {
        if self.read_at <= uptime {
            self.read_at = uptime.plus(POLL_EVERY);
            for run in self.runner.running_runs() {
                self.runner.read_messages(run, &keeper_output(&self.data, run));
            }
        }
    }

    /// Waits for a reply of the store, for the runner, or for the next check of files.
    async fn wait(&mut self) {
        let uptime = self.clock.uptime();
        let retry_at = self.retry.map(|(until, _)| until).filter(|until| *until > uptime);
        let wait = if self.finishing.is_empty() && !self.runner.has_running() {
            IDLE_WAIT
        } else if let Some(retry_at) = retry_at {
            retry_at.minus(uptime)
        } else if self.is_full() {
            // A reply ends it.
            POLL_EVERY
        } else {
            let poll_in = if self.eager.is_empty() { self.poll_at.minus(uptime) } else { Span::ZERO };
            self.budget.wait().unwrap_or(poll_in)
        };
        tokio::select! {
            biased;
            Some(reply) = self.requests.join_next() => {
                let mut next = Some(reply);
                while let Some(reply) = next {
                    self.apply_reply(reply.expect("a request does not panic"));
                    next = self.requests.try_join_next();
                }
            }
            () = self.runner.output_notified() => {}
            () = self.clock.sleep(wait) => {}
        }
    }

    /// Appends the next piece of each output that has one, as far as the budget goes. Files of running programs are
    /// checked a few times a second.
    fn send_some(&mut self, uptime: Span) {
        self.budget.refill(uptime);
        let polls = self.poll_at <= uptime;
        if polls {
            self.poll_at = uptime.plus(POLL_EVERY);
            self.forget_finished();
        }
        for Candidate { run, kind, .. } in self.candidates(polls) {
            if self.is_full() || self.budget.wait().is_some() {
                // Those whose programs have ended are tried again in any case.
                self.eager.extend((kind == CandidateKind::Running).then_some(run));
                continue;
            }
            match (kind, self.progress(run).cloned()) {
                (_, None) => self.request_progress(run),
                (CandidateKind::Ended(total), Some(progress)) => self.send_rest(run, total, &progress),
                (CandidateKind::Running, Some(progress)) => self.send_grown(run, &progress),
            }
        }
    }

    /// Outputs without a request in flight, in the order in which they are sent.
    fn candidates(&mut self, polls: bool) -> Vec<Candidate> {
        let eager = std::mem::take(&mut self.eager);
        let mut running = if polls || !eager.is_empty() { self.runner.running_runs() } else { Vec::new() };
        running.retain(|run| polls || eager.contains(run));
        let ended = self.finishing.iter().map(|(run, total)| (*run, CandidateKind::Ended(*total)));
        let all = ended.chain(running.into_iter().map(|run| (run, CandidateKind::Running)));
        let idle = all.filter(|(run, _)| !self.in_flight.contains(run));
        let stored = |run: RunId| self.progress.get(&run).and_then(Option::as_ref).map_or(0, |found| found.stored);
        let mut candidates: Vec<Candidate> =
            idle.map(|(run, kind)| Candidate { stored: stored(run), run, kind }).collect();
        candidates.sort_unstable();
        candidates
    }

    /// Appends the next piece of an output whose program has ended, or reports that it is stored.
    fn send_rest(&mut self, run: RunId, total: Option<u64>, progress: &OutputProgress) {
        match self.file(run).rest(progress, total) {
            Ok(Some(piece)) => self.append(run, progress, piece),
            Ok(None) => self.finish(run, total),
            Err(source) => self.give_up(run, total, &ProgramEvent::OutputUnreadable { run, source }),
        }
    }

    /// Appends the next piece of a running program that has written something.
    fn send_grown(&mut self, run: RunId, progress: &OutputProgress) {
        let file = self.file(run);
        if !file.has_changed(progress) {
            return;
        }
        match file.grown(progress) {
            Ok(piece) if piece.bytes.is_empty() => drop(self.progress.insert(run, Some(piece.after))),
            Ok(piece) => self.append(run, progress, piece),
            // It is read again when the program has ended, and a failure is logged then.
            Err(_) => {}
        }
    }

    /// The file with the output of a run.
    fn file(&mut self, run: RunId) -> OutputFile {
        if let Some(path) = self.runner.response_file(run) {
            return OutputFile::at(path, self.limits);
        }
        let known = self.secrets.get(&run).cloned();
        let secrets = known.or_else(|| {
            let secrets = Arc::new(self.runner.secrets_of(run)?);
            self.secrets.insert(run, Arc::clone(&secrets));
            Some(secrets)
        });
        let secrets = secrets.unwrap_or_default();
        match self.runner.plugin_output(run) {
            Some(path) => OutputFile::of_plugin(path, secrets, self.runner.plugin_stderr(run), self.limits),
            None => OutputFile::new(&self.data, run, secrets, self.limits),
        }
    }

    /// Reads the messages of a plug-in that has ended to their end. Returns the length of what is to be stored: of their
    /// text, or of the output of another program.
    fn finish_messages(&self, run: RunId, length: Option<u64>) -> Option<u64> {
        match self.runner.finish_messages(run, &keeper_output(&self.data, run), length) {
            None => length,
            // How long the text of a lost program is follows from its file.
            Some(Ok(text)) => length.map(|_| text),
            Some(Err(source)) => {
                self.runner.observe(&ProgramEvent::OutputUnreadable { run, source });
                let text = self.runner.plugin_output(run).and_then(|path| path.metadata().ok());
                length.map(|_| text.map_or(0, |found| found.len()))
            }
        }
    }

    fn forget_finished(&mut self) {
        let runner = Arc::clone(&self.runner);
        self.progress.retain(|run, _| runner.has(*run));
        self.secrets.retain(|run, _| runner.has(*run));
        if runner.has_all() {
            self.restarts.retain(|run| runner.has(run));
            runner.forget_messages();
        }
    }

    fn finish(&mut self, run: RunId, total: Option<u64>) {
        let progress = self.progress.remove(&run).flatten().unwrap_or_default();
        self.finishing.remove(&run);
        // The report of a program that was lost with its keeper does not describe its output.
        let written = total.map_or_else(OutputSummary::default, |total| {
            let written = self.file(run).written(&progress, total);
            written.unwrap_or_else(|_| OutputSummary { bytes: total, tail: Vec::new(), stderr: None })
        });
        self.secrets.remove(&run);
        fail::point("daemon-after-output");
        self.runner.output_stored(run, written);
    }

    /// Reports the end of a run although its output is incomplete.
    fn give_up(&mut self, run: RunId, total: Option<u64>, event: &ProgramEvent) {
        self.runner.observe(event);
        self.finish(run, total);
    }

    /// How far an output is stored; `None` if the store has to be queried.
    fn progress(&mut self, run: RunId) -> Option<&OutputProgress> {
        let runner = &self.runner;
        let begin = || runner.is_new(run).then(OutputProgress::default);
        self.progress.entry(run).or_insert_with(begin).as_ref()
    }

    /// Requests from the store how far an output is stored.
    fn request_progress(&mut self, run: RunId) {
        let (store, restart) = (Arc::clone(&self.store), self.restarts.get(run));
        self.in_flight.insert(run);
        self.requests.spawn(async move {
            let progress = stored_progress(&*store, run, restart).await.map(Some);
            StoreReply { run, bytes: 0, progress }
        });
    }

    fn append(&mut self, run: RunId, before: &OutputProgress, piece: OutputPiece) {
        let store = Arc::clone(&self.store);
        let OutputPiece { bytes, after } = piece;
        let from = before.stored;
        if after.anchor != before.anchor {
            let recorded = self.restarts.record(run, before.anchor, after.anchor);
            self.observe_unrecorded(run, recorded);
        }
        self.in_flight.insert(run);
        self.bytes_in_flight += bytes.len();
        self.budget.spend(bytes.len());
        self.requests.spawn(async move {
            let length = store.append(run, from, &bytes).await;
            // If the store has more or less than expected, its length is queried again.
            let progress = length.map(|length| (length == after.stored).then_some(after));
            StoreReply { run, bytes: bytes.len(), progress }
        });
    }

    fn apply_reply(&mut self, reply: StoreReply) {
        let StoreReply { run, bytes, progress } = reply;
        self.in_flight.remove(&run);
        self.bytes_in_flight -= bytes;
        if let Ok(Some(progress)) = &progress {
            let confirmed = self.restarts.confirm(run, progress.anchor);
            self.observe_unrecorded(run, confirmed);
        }
        // An append whose reply was lost may have taken place, so the store is queried.
        self.progress.insert(run, progress.as_ref().ok().cloned().flatten());
        match progress {
            Ok(_) => {
                self.retry = None;
                if bytes as u64 >= PIECE_MAX {
                    self.eager.insert(run);
                }
            }
            Err(fault) if fault.is_transient() => {
                let wait = self.retry.map_or(RETRY_MIN, |(_, wait)| wait.plus(wait).min(RETRY_MAX));
                self.retry = Some((self.clock.uptime().plus(wait), wait));
            }
            // The output of a running program is tried again.
            Err(source) => {
                if let Some(total) = self.finishing.get(&run).copied() {
                    self.give_up(run, total, &ProgramEvent::OutputNotStored { run, source });
                }
            }
        }
    }

    /// A restart that cannot be recorded does not stop the output. If the daemon crashes before the output is stored to
    /// its end, the next one stores the file again from its start.
    fn observe_unrecorded(&self, run: RunId, recorded: io::Result<()>) {
        if let Err(source) = recorded {
            self.runner.observe(&ProgramEvent::RestartUnrecorded { run, source });
        }
    }

    fn is_full(&self) -> bool {
        self.requests.len() >= PIECES_MAX || self.bytes_in_flight >= BYTES_MAX
    }
}

/// How far an earlier daemon stored an output.
async fn stored_progress(store: &dyn Store, run: RunId, restart: Restart) -> Result<OutputProgress, Fault> {
    let length = store.read(run, 0, 0).await?.length;
    let anchor = restart.anchor(length);
    let edge = EDGE.min(length - anchor.stored);
    let first = read(store, run, anchor.stored, edge).await?;
    let last = read(store, run, length - edge, edge).await?;
    Ok(OutputProgress::from_store(length, anchor, first, last))
}

async fn read(store: &dyn Store, run: RunId, from: u64, bytes: u64) -> Result<Vec<u8>, Fault> {
    Ok(store.read(run, from, usize::try_from(bytes).unwrap_or(usize::MAX)).await?.bytes)
}
