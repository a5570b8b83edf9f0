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
use cronhold_programs::output::{OutputFile, PIECE_MAX, is_whole};
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
    /// How much of each output is stored, as far as it is known. The store answers with the truth when it gets the first
    /// piece, of which it leaves out what an earlier life has stored.
    stored: BTreeMap<RunId, u64>,
    /// How long outputs are that are over.
    finishing: BTreeMap<RunId, u64>,
    /// Runs of which a piece is on its way.
    flying: BTreeSet<RunId>,
    pieces: JoinSet<Landed>,
    bytes: usize,
    /// When files are looked at next.
    look_at: Span,
    /// Until when the store is left alone, and how long the next time.
    away: Option<(Span, Span)>,
}

/// A piece that has arrived, or has not.
struct Landed {
    run: RunId,
    bytes: usize,
    length: Result<u64, Fault>,
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
            data,
            store,
            programs,
            log,
            clock,
            is_over,
            stored: BTreeMap::new(),
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
        let waiting: Vec<(RunId, u64)> = self
            .finishing
            .iter()
            .filter(|(run, _)| !self.flying.contains(run))
            .map(|(run, total)| (*run, *total))
            .collect();
        for (run, total) in waiting {
            if self.is_full() {
                return;
            }
            let stored = self.stored.get(&run).copied().unwrap_or(0);
            if is_whole(stored, total) {
                self.finish(run, total);
                continue;
            }
            match OutputFile::new(&self.data, run).rest(stored, total) {
                Ok(bytes) if !bytes.is_empty() => self.send(run, stored, bytes),
                Ok(_) => self.give_up(run, total, "the file is shorter than it was"),
                Err(error) => self.give_up(run, total, &error.to_string()),
            }
        }
    }

    fn finish(&mut self, run: RunId, total: u64) {
        let written = OutputFile::new(&self.data, run).written(total);
        let written = written.unwrap_or_else(|_| Written { bytes: total, tail: Vec::new() });
        self.finishing.remove(&run);
        self.stored.remove(&run);
        fail::point("daemon-after-output");
        self.programs.written(run, written);
    }

    /// The end of a run is worth more than its output.
    fn give_up(&mut self, run: RunId, total: u64, why: &str) {
        self.log.say(Weight::Trouble, format!("the output of run {run} is not complete: {why}"));
        self.finish(run, total);
    }

    /// Sends the next piece of each program that runs and has written something.
    fn look(&mut self) {
        let running = self.programs.running_runs();
        let finishing = &self.finishing;
        self.stored.retain(|run, _| finishing.contains_key(run) || running.binary_search(run).is_ok());
        for run in running {
            if self.is_full() {
                return;
            }
            let stored = self.stored.get(&run).copied().unwrap_or(0);
            let file = OutputFile::new(&self.data, run);
            if self.flying.contains(&run) || !file.has_grown(stored) {
                continue;
            }
            // What cannot be read now is read once more when the program has ended, and then somebody is told.
            if let Some(bytes) = file.grown(stored).ok().filter(|bytes| !bytes.is_empty()) {
                self.send(run, stored, bytes);
            }
        }
    }

    fn send(&mut self, run: RunId, from: u64, piece: Vec<u8>) {
        let store = Arc::clone(&self.store);
        self.flying.insert(run);
        self.bytes += piece.len();
        self.pieces.spawn(async move {
            let length = store.append(run, from, &piece).await;
            Landed { run, bytes: piece.len(), length }
        });
    }

    fn land(&mut self, landed: Landed) {
        let Landed { run, bytes, length } = landed;
        self.flying.remove(&run);
        self.bytes -= bytes;
        match length {
            Ok(length) => {
                self.away = None;
                self.stored.insert(run, length);
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

    fn is_full(&self) -> bool {
        self.pieces.len() >= PIECES_MAX || self.bytes >= BYTES_MAX
    }
}
