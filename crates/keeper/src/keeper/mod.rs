//! The keeper itself: its parts, and the turn that it takes again and again. All that happened since the last turn is
//! taken together: many launches and exits share one flush of the journal and one write to the daemon.

mod ends;
mod hear;
mod launches;
mod reap;

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::OwnedFd;

use crate::cgroups::Cgroups;
use crate::events::{Events, Source};
use crate::home::{self, Home};
use crate::journal::Journal;
use crate::line::Line;
use crate::outputs::Outputs;
use crate::protocol::{FromKeeper, Launch, RunKey};
use crate::recover::recover;
use crate::spawn::Spawner;
use crate::table::Table;
use crate::{KeeperError, Options, clock, log};

/// How often outputs are looked at while they grow, in microseconds.
const OUTPUTS_LOOK: u64 = 200_000;
/// How often they are looked at while none of them grows.
const OUTPUTS_QUIET: u64 = 1_000_000;
/// A moment is quiet when nothing was started for so long.
const QUIET: u64 = 50_000;
/// While more is to be started than in one turn, the daemon is told so often what happened: it has work with each of them,
/// and programs that are due need the processors more.
const NEWS_WAIT: u64 = 200_000;
/// How long after a new journal could not be written it is tried again.
const RENEW_AGAIN: u64 = 1_000_000;
/// How long the last words to a daemon may take.
const FAREWELL: u64 = 1_000_000;

/// A keeper.
#[derive(Debug)]
pub(crate) struct Keeper {
    options: Options,
    home: Home,
    boot: String,
    journal: Journal,
    table: Table,
    outputs: Outputs,
    spawner: Spawner,
    cgroups: Cgroups,
    events: Events,
    listener: OwnedFd,
    /// Somebody who came and has not yet said hello.
    guest: Option<Line>,
    daemon: Option<Line>,
    /// The protocols of the last daemon that we did not understand.
    stranger: Option<(u32, u32)>,
    /// Launches that were asked for and not yet written down, with their runs.
    queue: VecDeque<Launch>,
    queued: BTreeSet<RunKey>,
    /// What the daemon is told at the end of the turn, when the journal is on disk, and when that was last done.
    news: Vec<FromKeeper>,
    told_at: u64,
    /// Whether nothing more is started, and we end with the last program.
    is_retiring: bool,
    /// Since when there is nothing to do.
    idle_since: Option<u64>,
    outputs_due: u64,
    /// When outputs that nobody needs are removed, if there are any.
    clear_due: Option<u64>,
    /// Whether more children may have ended than were waited for.
    has_children_left: bool,
    /// A new journal is not tried before this time.
    renew_after: u64,
    /// Looks at all processes are not taken before this time.
    look_after: u64,
}

/// Runs a keeper until there is nothing more to do for it: `cronhold keeper`. It takes the whole process: its signals,
/// its place, its children, and all files that are open but the standard streams.
pub fn run(options: Options) -> Result<(), KeeperError> {
    home::close_inherited().map_err(KeeperError::io("close files of others"))?;
    let home = Home::open(&options.data)?;
    // One that is started from a terminal leads its group already, and stays with it.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(KeeperError::io("take care of orphans"))?;
    let events = Events::new()?;
    let spawner = Spawner::new()?;
    let outputs = home.outputs()?;
    let boot = home::boot_id()?;
    let found = home.read_journal()?;
    let mut cgroups = Cgroups::find();
    let table = recover(&found, &boot, &mut cgroups)?;
    if found.is_whole {
        outputs.sweep(|run| table.is_over(run));
    }
    let (entries, lives) = table.entries();
    let journal = Journal::create(&home.folder, &boot, &entries, lives, options.journal_max)
        .map_err(KeeperError::io("write a new journal"))?;
    let listener = home.listen()?;
    events.watch(&listener, Source::Listener).map_err(KeeperError::io("listen for daemons"))?;
    let mut keeper = Keeper {
        options,
        home,
        boot,
        journal,
        table,
        outputs,
        spawner,
        cgroups,
        events,
        listener,
        guest: None,
        daemon: None,
        stranger: None,
        queue: VecDeque::new(),
        queued: BTreeSet::new(),
        news: Vec::new(),
        told_at: 0,
        is_retiring: false,
        idle_since: Some(clock::now()),
        outputs_due: 0,
        clear_due: None,
        has_children_left: false,
        renew_after: 0,
        look_after: 0,
    };
    while !keeper.is_done() {
        keeper.turn()?;
    }
    keeper.farewell();
    Ok(())
}

impl Keeper {
    /// Waits until something happens, and does all that there is to do.
    fn turn(&mut self) -> Result<(), KeeperError> {
        let sources = self.events.wait(self.next_due(), clock::now()).map_err(KeeperError::io("wait for events"))?;
        let signals = if sources.contains(&Source::Signals) { self.events.signals() } else { Default::default() };
        for source in sources {
            match source {
                Source::Listener => self.accept(),
                Source::Guest => self.hear_guest(),
                Source::Daemon => self.hear_daemon(),
                Source::Report(pid) => self.hear_stage(pid),
                Source::Signals | Source::Timer => {}
            }
        }
        if signals.child || std::mem::take(&mut self.has_children_left) {
            self.reap();
        }
        if signals.end {
            self.end_everything();
        }
        self.end_due();
        let launches = self.take_launches();
        let launches = self.commit(launches);
        for launch in &launches {
            self.launch(launch);
        }
        if let Err(error) = self.journal.flush() {
            log::line(&format!("the journal cannot be written: {error}"));
        }
        if self.queue.is_empty() || clock::now() >= self.told_at + NEWS_WAIT {
            self.tell_news();
        }
        self.look_at_outputs();
        self.clear_outputs(!launches.is_empty());
        self.renew_journal();
        self.note_idle();
        Ok(())
    }

    /// When there is something to do even if nothing happens.
    fn next_due(&self) -> Option<u64> {
        if !self.queue.is_empty() || self.has_children_left {
            return Some(0);
        }
        let outputs = (self.table.living_count() > 0).then_some(self.outputs_due);
        let idle = self.idle_since.map(|since| since.saturating_add(self.idle_micros()));
        [self.table.next_due(), outputs, self.clear_due, idle].into_iter().flatten().min()
    }

    fn look_at_outputs(&mut self) {
        let now = clock::now();
        if now < self.outputs_due || self.table.living_count() == 0 {
            return;
        }
        let mut grew = false;
        for (run, living) in self.table.all_living() {
            grew |= self.outputs.look(run, &mut living.growth);
        }
        self.outputs_due = now + if grew { OUTPUTS_LOOK } else { OUTPUTS_QUIET };
    }

    /// Removes what nobody needs as soon as there is a quiet moment.
    fn clear_outputs(&mut self, is_busy: bool) {
        let now = clock::now();
        let quiet_at = if is_busy { now + QUIET } else { self.clear_due.unwrap_or(now + QUIET) };
        let is_left = self.outputs.clear(quiet_at <= now);
        self.clear_due = is_left.then_some(quiet_at);
    }

    /// Writes a new journal when the old one has little room and a new one would have more.
    fn renew_journal(&mut self) {
        let now = clock::now();
        if self.journal.room() >= launches::BATCH as u64 || !self.journal.would_gain() || now < self.renew_after {
            return;
        }
        let (entries, lives) = self.table.entries();
        match Journal::create(&self.home.folder, &self.boot, &entries, lives, self.options.journal_max) {
            Ok(journal) => self.journal = journal,
            Err(error) => {
                self.renew_after = now + RENEW_AGAIN;
                log::line(&format!("no new journal can be written: {error}"));
            }
        }
    }

    fn note_idle(&mut self) {
        let is_idle = self.daemon.is_none() && self.table.living_count() == 0;
        self.idle_since = is_idle.then(|| self.idle_since.unwrap_or_else(clock::now));
    }

    fn idle_micros(&self) -> u64 {
        u64::try_from(self.options.idle.as_micros()).unwrap_or(u64::MAX)
    }

    fn is_done(&self) -> bool {
        if self.table.living_count() > 0 || !self.queue.is_empty() {
            return false;
        }
        let is_idle = self.idle_since.is_some_and(|since| clock::now() >= since.saturating_add(self.idle_micros()));
        self.is_retiring || is_idle
    }

    /// Lets the daemon read the rest of what it was told, within bounds. What it does not read the next keeper lists.
    fn farewell(&mut self) {
        self.home.remove_socket();
        let until = clock::now() + FAREWELL;
        while let Some(line) = self.daemon.as_mut()
            && line.flush().is_ok()
            && line.is_behind()
            && clock::now() < until
        {
            self.watch_daemon();
            if self.events.wait(Some(until), clock::now()).is_err() {
                return;
            }
        }
    }
}
