//! The keeper itself: its parts, and the turn of its loop. A turn takes everything together that happened since the
//! last one: many launches and exits share one flush of the journal and one write to the daemon.

mod daemon_links;
mod ending_scan;
mod launch_queue;
mod lifetime;
mod output_schedule;
mod supervisor;

use std::io;

use self::daemon_links::DaemonLinks;
use self::lifetime::Lifetime;
use self::supervisor::Supervisor;
use crate::cgroups::Cgroups;
use crate::collector::{self, OutputCollector};
use crate::events::{Events, Source};
use crate::home::{self, Home};
use crate::journal::RotatingJournal;
use crate::protocol::ToKeeper;
use crate::recover::recover;
use crate::spawn::Spawner;
use crate::{KeeperError, Options, clock, log};

/// While launches wait, reports are sent only this often, in microseconds: each costs the daemon some work, and
/// programs that are due need the processors more.
const NEWS_WAIT: u64 = 200_000;

#[derive(Debug)]
struct Keeper {
    home: Home,
    events: Events,
    links: DaemonLinks,
    programs: Supervisor,
    lifetime: Lifetime,
}

/// Runs a keeper until there is nothing more to do for it: `cronhold keeper`. It takes over the whole process: its
/// signals, its working directory, its children, and all open files except the standard streams.
pub fn run(options: Options) -> Result<(), KeeperError> {
    let mut keeper = Keeper::start(options)?;
    while !keeper.is_done() {
        keeper.turn()?;
    }
    keeper.home.remove_socket();
    keeper.links.say_farewell(&mut keeper.events);
    Ok(())
}

impl Keeper {
    /// Recovers what an earlier keeper left, and listens.
    fn start(options: Options) -> Result<Self, KeeperError> {
        home::close_inherited().map_err(KeeperError::io("close inherited files"))?;
        let home = Home::open(&options.data)?;
        // A keeper that is started from a terminal leads its group already, and stays in it.
        let _ = rustix::process::setsid();
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(KeeperError::io("become the parent of orphans"))?;
        let events = Events::new()?;
        let spawner = Spawner::new()?;
        let mut outputs = home.outputs()?;
        let boot = home::boot_id()?;
        let mut found = home.read_journal()?;
        if found.damaged > 0 {
            log::line(&format!("{} lines of the journal are damaged; the others are used", found.damaged));
            found.assume_started(outputs.runs());
        }
        let mut cgroups = Cgroups::find();
        let table = recover(&found, &boot, &mut cgroups, outputs.folder())?;
        collector::wait_for_earlier(outputs.folder());
        if found.is_whole {
            outputs.sweep(|run| table.is_finished(run));
        }
        table.finished().for_each(|run| outputs.mark_written(run));
        let folder = home.folder().map_err(KeeperError::io("open the keeper's directory"))?;
        let journal = RotatingJournal::create(folder, boot, &table, options.journal_max)
            .map_err(KeeperError::io("write a new journal"))?;
        let folder = outputs.folder().try_clone().map_err(KeeperError::io("open the output directory"))?;
        let collector = OutputCollector::start(folder, &spawner)
            .map_err(|error| KeeperError::io("start the collector of outputs")(io::Error::other(error)))?;
        let links = DaemonLinks::listen(&home, &events, options.version)?;
        let programs = Supervisor::new(table, journal, (outputs, collector), cgroups, spawner);
        Ok(Self { home, events, links, programs, lifetime: Lifetime::new(options.idle, clock::now()) })
    }

    /// Waits until something happens, and does everything that there is to do.
    fn turn(&mut self) -> Result<(), KeeperError> {
        let due = self.programs.next_due().into_iter().chain(self.lifetime.due()).min();
        let sources = self.events.wait(due, clock::now()).map_err(KeeperError::io("wait for events"))?;
        let signals = if sources.contains(&Source::Signals) { self.events.signals() } else { Default::default() };
        for source in sources {
            match source {
                Source::Listener => self.links.accept(&self.home, &self.events),
                Source::Pending => self.receive_hello(),
                Source::Daemon => self.receive(),
                Source::StageReport(pid) => self.programs.receive_stage_report(pid),
                Source::Signals | Source::Timer => {}
            }
        }
        self.programs.reap(signals.child);
        if signals.end {
            log::line("received a signal to end; stopping all programs");
            self.lifetime.retire();
            self.programs.stop_all();
        }
        self.programs.end_due();
        let is_busy = self.programs.launch_batch(&self.events);
        self.programs.flush_journal();
        if !self.programs.has_launches() || clock::now() >= self.links.last_sent() + NEWS_WAIT {
            let news = self.programs.take_news();
            self.links.send(&news, self.programs.has_room(), &self.events);
            self.drop_queued_without_daemon();
        }
        self.programs.maintain(is_busy);
        self.lifetime.note(!self.links.has_daemon() && !self.programs.has_running(), clock::now());
        Ok(())
    }

    fn receive_hello(&mut self) {
        if !self.links.receive_hello(&self.programs) {
            return;
        }
        self.programs.drop_queued();
        drop(self.programs.take_news());
        self.links.watch(self.programs.has_room(), &self.events);
        self.handle_messages();
    }

    fn receive(&mut self) {
        let received = self.links.receive();
        self.handle_messages();
        if let Err(why) = received {
            self.links.close_daemon(&why);
        }
        self.drop_queued_without_daemon();
    }

    /// Handles all received messages.
    fn handle_messages(&mut self) {
        while let Some(message) = self.links.next_message() {
            self.handle(message);
        }
        self.drop_queued_without_daemon();
    }

    fn handle(&mut self, message: ToKeeper) {
        match message {
            ToKeeper::Hello { .. } => log::line("the daemon sent a second hello"),
            ToKeeper::Launch(launch) => self.programs.enqueue(*launch, self.lifetime.is_retiring()),
            ToKeeper::Stop { run, signal, grace } => self.programs.stop(run, signal, grace),
            ToKeeper::Signal { run, signal } => self.programs.signal(run, signal),
            ToKeeper::Lease { run, kill_at } => self.programs.extend(run, kill_at),
            ToKeeper::Forget { runs } => runs.into_iter().for_each(|run| self.programs.forget(run)),
            ToKeeper::Retire => self.lifetime.retire(),
            ToKeeper::Ping => self.programs.answer_ping(),
        }
    }

    /// Launches of a daemon that is gone are not carried out.
    fn drop_queued_without_daemon(&mut self) {
        if !self.links.has_daemon() {
            self.programs.drop_queued();
        }
    }

    fn is_done(&self) -> bool {
        self.programs.is_idle() && self.lifetime.is_over(clock::now())
    }
}
