//! Talking to daemons: letting them in, understanding what they say, and telling them what happened. One daemon has the
//! word; a new one that says hello takes it from the old one, which is gone or will notice.

use rustix::net::SocketFlags;
use rustix::net::sockopt::socket_peercred;

use super::Keeper;
use crate::events::Source;
use crate::line::{Closed, Line};
use crate::protocol::{FromKeeper, LISTED_MAX, Program, RunKey, ToKeeper, is_understood, spoken};
use crate::{clock, fail, journal, log};

/// Launches that may wait; beyond that the daemon is not read, and waits itself.
const QUEUE_MAX: usize = 4_096;

impl Keeper {
    /// Lets somebody in who may talk to us.
    pub(super) fn accept(&mut self) {
        while let Ok(socket) = rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            let uid = socket_peercred(&socket).map(|peer| peer.uid.as_raw());
            if !uid.is_ok_and(|uid| self.home.may_talk(uid)) {
                log::line("somebody came who may not talk to this keeper");
                continue;
            }
            if self.events.watch(&socket, Source::Guest).is_ok() {
                self.guest = Some(Line::new(socket));
            }
        }
    }

    /// Hears the first message of somebody.
    pub(super) fn hear_guest(&mut self) {
        let Some(mut guest) = self.guest.take() else { return };
        match guest.receive().and_then(|()| guest.next()) {
            Ok(None) => self.guest = Some(guest),
            Ok(Some(ToKeeper::Hello { protocol, oldest, version })) => self.welcome(guest, protocol, oldest, &version),
            Ok(Some(_)) => log::line("somebody spoke before saying hello"),
            Err(Closed::Gone) => {}
            Err(why) => log::line(&format!("somebody was sent away: {why}")),
        }
    }

    fn welcome(&mut self, mut guest: Line, newest: u32, oldest: u32, version: &str) {
        let ((own_oldest, protocol), pid) = (spoken(), std::process::id());
        let other = if fail::plays(fail::OTHER_VERSION) { "-other" } else { "" };
        let own = format!("{}{other}", self.options.version);
        let hello =
            FromKeeper::Hello { protocol, oldest: own_oldest, version: own, pid, warnings: self.cgroups.warnings() };
        let told = guest.tell(&hello).and_then(|()| {
            if is_understood(oldest, newest) { tell_all(&mut guest, &self.table.list()) } else { guest.flush() }
        });
        if !is_understood(oldest, newest) {
            // It comes again every other second for as long as a program of ours runs.
            if self.stranger.replace((oldest, newest)) != Some((oldest, newest)) {
                let words =
                    format!("a daemon of version {version} speaks protocols {oldest} to {newest}, none of ours");
                log::line(&words);
            }
            return;
        }
        if let Err(why) = told {
            return log::line(&format!("a daemon was sent away: {why}"));
        }
        self.leave_daemon();
        // What was not told yet is in the list.
        self.news.clear();
        self.daemon = Some(guest);
        self.watch_daemon();
        self.hear_rest();
    }

    /// Hears what the daemon says.
    pub(super) fn hear_daemon(&mut self) {
        let Some(line) = self.daemon.as_mut() else { return };
        let received = if line.waits.0 { line.receive() } else { Ok(()) };
        self.hear_rest();
        if let Err(why) = received {
            self.hang_up(&why);
        }
    }

    /// Takes all messages that came.
    fn hear_rest(&mut self) {
        while let Some(line) = self.daemon.as_mut() {
            match line.next() {
                Ok(Some(message)) => self.obey(message),
                Ok(None) => return,
                Err(why) => return self.hang_up(&why),
            }
        }
    }

    fn obey(&mut self, message: ToKeeper) {
        match message {
            ToKeeper::Hello { .. } => log::line("the daemon said hello twice"),
            ToKeeper::Launch(launch) => self.enqueue(*launch),
            ToKeeper::Stop { run, signal, grace } => self.stop(run, signal, grace),
            ToKeeper::Signal { run, signal } => self.signal(run, signal),
            ToKeeper::Lease { run, kill_at } => self.extend(run, kill_at),
            ToKeeper::Forget { runs } => runs.into_iter().for_each(|run| self.forget(run)),
            ToKeeper::Retire => self.is_retiring = true,
        }
    }

    /// What became of a run is stored elsewhere.
    fn forget(&mut self, run: RunKey) {
        fail::point("keeper-before-forget");
        if self.table.forget(run) {
            self.journal.add(&journal::Entry::Forgotten(run));
            self.outputs.remove_later(run);
            self.cgroups.remove(run);
        }
    }

    /// Tells the daemon what happened since it was last told. Without a daemon it is in the list of the next one.
    pub(super) fn tell_news(&mut self) {
        self.told_at = clock::now();
        let news = std::mem::take(&mut self.news);
        for message in &news {
            match message {
                FromKeeper::Started { .. } => fail::point("keeper-before-started-told"),
                FromKeeper::Ended { .. } => fail::point("keeper-after-exit-written"),
                FromKeeper::Hello { .. } | FromKeeper::Listed { .. } | FromKeeper::Refused { .. } => {}
            }
        }
        if let Some(line) = self.daemon.as_mut() {
            let told = news.iter().try_for_each(|message| line.tell(message)).and_then(|()| line.flush());
            match told {
                Ok(()) => self.watch_daemon(),
                Err(why) => self.hang_up(&why),
            }
        }
        self.news = news;
        self.news.clear();
    }

    /// Waits for what is of use: no launches while many wait, and room to write only when something is to be written.
    pub(super) fn watch_daemon(&mut self) {
        let Some(line) = self.daemon.as_mut() else { return };
        let waits = (self.queue.len() < QUEUE_MAX, line.is_behind());
        let changed = self.events.change(line.socket(), Source::Daemon, waits.0, waits.1);
        line.waits = waits;
        if let Err(error) = changed {
            self.hang_up(&Closed::Io(error));
        }
    }

    fn hang_up(&mut self, why: &Closed) {
        if !matches!(why, Closed::Gone) {
            log::line(&format!("the daemon was sent away: {why}"));
        }
        self.leave_daemon();
    }

    /// What a daemon asked for and was not yet written down will not be done: the next one reads in its list what was.
    fn leave_daemon(&mut self) {
        self.daemon = None;
        self.queue.clear();
        self.queued.clear();
    }
}

/// Tells all that is known, in parts, of which there is at least one.
fn tell_all(line: &mut Line, programs: &[Program]) -> Result<(), Closed> {
    let mut parts = programs.chunks(LISTED_MAX).peekable();
    if parts.peek().is_none() {
        line.tell(&FromKeeper::Listed { programs: Vec::new(), is_last: true })?;
    }
    while let Some(part) = parts.next() {
        line.tell(&FromKeeper::Listed { programs: part.to_vec(), is_last: parts.peek().is_none() })?;
    }
    line.flush()
}
