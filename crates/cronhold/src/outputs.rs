//! Carries what programs write from their files into the store: while they run, a few times a second, and the rest when
//! they have ended, before the node is told so. It has a thread of its own, because files are read here; the node never
//! waits for it, and a store that is away makes it wait without losing anything.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use cronhold_core::RunId;
use cronhold_core::record::Written;
use cronhold_engine::Clock;
use cronhold_keeper::fail;
use cronhold_programs::Finish;
use cronhold_programs::output::{EDGE, OutputFile, PIECE_MAX, Piece, Progress, Restart, RestartLog};
use cronhold_schedule::Span;
use cronhold_store::{Fault, Store};
use tokio::task::JoinSet;

use crate::clock::SystemClock;
use crate::log::{Log, Weight};
use crate::outside::Programs;

/// Files of running programs are looked at this often.
const LOOK_EVERY: Span = Span::from_millis(250);
/// Without programs there is nothing to look at until somebody rings.
const IDLE_WAIT: Span = Span::from_secs(60);
/// Pieces that are on their way to the store at once, and their bytes, but for the last of them.
const PIECES_MAX: usize = 256;
const BYTES_MAX: usize = 32 << 20;
/// Programs that have ended and whose outputs are taken on at once.
const FINISHING_MAX: usize = 1_024;
/// First and longest wait after the store failed.
const AWAY_MIN: Span = Span::from_millis(100);
const AWAY_MAX: Span = Span::from_secs(5);

/// The thread that stores outputs. It ends with this.
#[derive(Debug)]
pub struct Outputs {
    programs: Arc<Programs>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The thread's own side.
struct Carrier {
    data: PathBuf,
    store: Arc<dyn Store>,
    programs: Arc<Programs>,
    log: Log,
    clock: SystemClock,
    is_over: Arc<AtomicBool>,
    /// How far each output is stored; none when only the store knows, which is asked then.
    progress: BTreeMap<RunId, Option<Progress>>,
    /// Where files begin in what is stored, of programs that truncated theirs.
    restarts: RestartLog,
    /// How long outputs are that are over, if somebody knows.
    finishing: BTreeMap<RunId, Option<u64>>,
    /// Runs of which a piece is on its way, or of which the store was asked.
    flying: BTreeSet<RunId>,
    pieces: JoinSet<Landed>,
    bytes: usize,
    /// When files are looked at next.
    look_at: Span,
    /// Until when the store is left alone, and how long the next time.
    away: Option<(Span, Span)>,
}

/// A piece that has arrived, or has not, and how far its output is stored, if that is known.
struct Landed {
    run: RunId,
    bytes: usize,
    progress: Result<Option<Progress>, Fault>,
}

impl Outputs {
    /// Begins to carry.
    pub fn start(data: PathBuf, store: Arc<dyn Store>, programs: Arc<Programs>, log: Log) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (whose, until) = (Arc::clone(&programs), Arc::clone(&is_over));
        let executor = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let work = move || {
            executor.block_on(async {
                // Without a timer there is nothing to be done, and the executor would not have been made either.
                let Ok(clock) = SystemClock::new() else { return };
                Carrier::new(data, store, whose, log, clock, until).go_on().await;
            });
        };
        let thread = std::thread::Builder::new().name("outputs".to_owned()).spawn(work)?;
        Ok(Self { programs, is_over, thread: Some(thread) })
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.programs.ring_outputs();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to say.
            let _ = thread.join();
        }
    }
}

impl Carrier {
    fn new(
        data: PathBuf,
        store: Arc<dyn Store>,
        programs: Arc<Programs>,
        log: Log,
        clock: SystemClock,
        is_over: Arc<AtomicBool>,
    ) -> Self {
        Self {
            restarts: RestartLog::open(&data),
            data,
            store,
            programs,
            log,
            clock,
            is_over,
            progress: BTreeMap::new(),
            finishing: BTreeMap::new(),
            flying: BTreeSet::new(),
            pieces: JoinSet::new(),
            bytes: 0,
            look_at: Span::ZERO,
            away: None,
        }
    }

    async fn go_on(mut self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let uptime = self.clock.uptime();
            let room = FINISHING_MAX.saturating_sub(self.finishing.len());
            for Finish { run, output } in self.programs.take_finishing(room) {
                self.finishing.insert(run, output);
            }
            if self.away.is_none_or(|(until, _)| until <= uptime) {
                self.finish_all();
                if self.look_at <= uptime {
                    self.look_at = uptime.plus(LOOK_EVERY);
                    self.look();
                }
            }
            self.wait().await;
        }
    }

    /// Waits for pieces to land, for news, or for the next look.
    async fn wait(&mut self) {
        let uptime = self.clock.uptime();
        let away = self.away.map(|(until, _)| until).filter(|until| *until > uptime);
        let is_idle = self.finishing.is_empty() && !self.programs.has_running();
        let wait = if is_idle { IDLE_WAIT } else { away.unwrap_or(self.look_at).minus(uptime) };
        tokio::select! {
            biased;
            Some(landed) = self.pieces.join_next() => {
                let mut next = Some(landed);
                while let Some(landed) = next {
                    self.land(landed.expect("a piece that is sent does not panic"));
                    next = self.pieces.try_join_next();
                }
            }
            () = self.programs.output_rung() => {}
            () = self.clock.sleep(wait) => {}
        }
    }

    /// Sends the next piece of each output that is over, and tells the node of those that are stored.
    fn finish_all(&mut self) {
        let waiting: Vec<(RunId, Option<u64>)> = self
            .finishing
            .iter()
            .filter(|(run, _)| !self.flying.contains(run))
            .map(|(run, total)| (*run, *total))
            .collect();
        for (run, total) in waiting {
            if self.is_full() {
                return;
            }
            let file = OutputFile::new(&self.data, run);
            let Some(progress) = self.progress(run).cloned() else {
                self.ask(run);
                continue;
            };
            match file.rest(&progress, total) {
                Ok(Some(piece)) => self.send(run, &progress, piece),
                Ok(None) => self.finish(run, total),
                Err(error) => self.give_up(run, total, &error.to_string()),
            }
        }
    }

    fn finish(&mut self, run: RunId, total: Option<u64>) {
        let progress = self.progress.remove(&run).flatten().unwrap_or_default();
        self.finishing.remove(&run);
        // Of one that was lost with its keeper the node is told nothing more than that.
        let written = total.map_or_else(Written::default, |total| {
            let written = OutputFile::new(&self.data, run).written(&progress, total);
            written.unwrap_or_else(|_| Written { bytes: total, tail: Vec::new() })
        });
        fail::point("daemon-after-output");
        self.programs.written(run, written);
    }

    /// The end of a run is worth more than its output.
    fn give_up(&mut self, run: RunId, total: Option<u64>, why: &str) {
        self.log.say(Weight::Trouble, format!("the output of run {run} is not complete: {why}"));
        self.finish(run, total);
    }

    /// Sends the next piece of each program that runs and has written something.
    fn look(&mut self) {
        let programs = Arc::clone(&self.programs);
        self.progress.retain(|run, _| programs.has(*run));
        if programs.has_all() {
            self.restarts.retain(|run| programs.has(run));
        }
        for run in programs.running_runs() {
            if self.is_full() {
                return;
            }
            if self.flying.contains(&run) {
                continue;
            }
            let file = OutputFile::new(&self.data, run);
            let Some(progress) = self.progress(run) else {
                self.ask(run);
                continue;
            };
            if !file.has_changed(progress) {
                continue;
            }
            let progress = progress.clone();
            match file.grown(&progress) {
                Ok(piece) if piece.bytes.is_empty() => drop(self.progress.insert(run, Some(piece.after))),
                Ok(piece) => self.send(run, &progress, piece),
                // What cannot be read now is read once more when the program has ended, and then somebody is told.
                Err(_) => {}
            }
        }
    }

    /// How far an output is stored, unless the store has to be asked.
    fn progress(&mut self, run: RunId) -> Option<&Progress> {
        let programs = &self.programs;
        let begin = || programs.is_new(run).then(Progress::default);
        self.progress.entry(run).or_insert_with(begin).as_ref()
    }

    /// Asks how far an output is stored.
    fn ask(&mut self, run: RunId) {
        let (store, restart) = (Arc::clone(&self.store), self.restarts.get(run));
        self.flying.insert(run);
        self.pieces.spawn(async move {
            let progress = take_up(&*store, run, restart).await.map(Some);
            Landed { run, bytes: 0, progress }
        });
    }

    fn send(&mut self, run: RunId, before: &Progress, piece: Piece) {
        let store = Arc::clone(&self.store);
        let Piece { bytes, after } = piece;
        let from = before.stored;
        if after.base != before.base {
            let recorded = self.restarts.record(run, before.base, after.base);
            self.note_unrecorded(run, recorded);
        }
        self.flying.insert(run);
        self.bytes += bytes.len();
        self.pieces.spawn(async move {
            let length = store.append(run, from, &bytes).await;
            // Where the store has something else the file is looked for anew.
            let progress = length.map(|length| (length == after.stored).then_some(after));
            Landed { run, bytes: bytes.len(), progress }
        });
    }

    fn land(&mut self, landed: Landed) {
        let Landed { run, bytes, progress } = landed;
        self.flying.remove(&run);
        self.bytes -= bytes;
        if let Ok(Some(progress)) = &progress {
            let confirmed = self.restarts.confirm(run, progress.base);
            self.note_unrecorded(run, confirmed);
        }
        // A piece may be stored though its answer is lost.
        self.progress.insert(run, progress.as_ref().ok().cloned().flatten());
        match progress {
            Ok(_) => {
                self.away = None;
                if bytes as u64 >= PIECE_MAX {
                    // There is more where it came from.
                    self.look_at = Span::ZERO;
                }
            }
            Err(fault) if fault.is_passing() => {
                let wait = self.away.map_or(AWAY_MIN, |(_, wait)| wait.plus(wait).min(AWAY_MAX));
                self.away = Some((self.clock.uptime().plus(wait), wait));
            }
            // Of a program that runs it is tried again.
            Err(fault) => {
                if let Some(total) = self.finishing.get(&run).copied() {
                    self.give_up(run, total, &fault.to_string());
                }
            }
        }
    }

    /// A restart that is not recorded does not stop the output. A daemon that crashes before it is stored to the end
    /// makes the next one store the file again from its start.
    fn note_unrecorded(&self, run: RunId, recorded: io::Result<()>) {
        if let Err(error) = recorded {
            let text = format!("cannot record that the program of run {run} truncated its output: {error}");
            self.log.say(Weight::Trouble, text);
        }
    }

    fn is_full(&self) -> bool {
        self.pieces.len() >= PIECES_MAX || self.bytes >= BYTES_MAX
    }
}

/// How far an earlier life has stored an output, and where its file goes on.
async fn take_up(store: &dyn Store, run: RunId, restart: Restart) -> Result<Progress, Fault> {
    let length = store.read(run, 0, 0).await?.length;
    let base = restart.base(length);
    let edge = EDGE.min(length - base);
    let first = read(store, run, base, edge).await?;
    let last = read(store, run, length - edge, edge).await?;
    Ok(Progress::of_earlier(length, base, first, last))
}

async fn read(store: &dyn Store, run: RunId, from: u64, bytes: u64) -> Result<Vec<u8>, Fault> {
    Ok(store.read(run, from, usize::try_from(bytes).unwrap_or(usize::MAX)).await?.bytes)
}
