//! Connections to daemons. One daemon is in charge; a new one that sends a hello replaces the old one, which is gone or
//! will notice. A connection that has not sent a hello yet is pending.

use std::os::fd::OwnedFd;

use rustix::net::SocketFlags;
use rustix::net::sockopt::socket_peercred;

use super::supervisor::Supervisor;
use crate::connection::{ConnectionClosed, DaemonConnection};
use crate::events::{Events, Source};
use crate::home::Home;
use crate::protocol::{FromKeeper, LISTED_MAX, ListedProgram, ToKeeper, is_understood, spoken};
use crate::{KeeperError, clock, fail, log};

/// How long the last messages to a daemon may take when the keeper ends, in microseconds.
const FAREWELL: u64 = 1_000_000;

/// The connections of a keeper.
#[derive(Debug)]
pub(super) struct DaemonLinks {
    listener: OwnedFd,
    /// The keeper's version, for messages.
    version: String,
    pending: Option<DaemonConnection>,
    daemon: Option<DaemonConnection>,
    /// The protocols of the last daemon with which none was in common, so that it is logged once.
    unknown_protocol: Option<(u32, u32)>,
    /// When reports were last sent.
    last_sent: u64,
}

impl DaemonLinks {
    /// Listens for daemons.
    pub(super) fn listen(home: &Home, events: &Events, version: String) -> Result<Self, KeeperError> {
        let listener = home.listen()?;
        events.watch(&listener, Source::Listener).map_err(KeeperError::io("listen for daemons"))?;
        Ok(Self { listener, version, pending: None, daemon: None, unknown_protocol: None, last_sent: 0 })
    }

    pub(super) fn has_daemon(&self) -> bool {
        self.daemon.is_some()
    }

    pub(super) fn last_sent(&self) -> u64 {
        self.last_sent
    }

    /// Accepts connections of users that may control the keeper.
    pub(super) fn accept(&mut self, home: &Home, events: &Events) {
        while let Ok(socket) = rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            let uid = socket_peercred(&socket).map(|peer| peer.uid.as_raw());
            if !uid.is_ok_and(|uid| home.may_connect(uid)) {
                log::line("rejected a connection of a user that may not control this keeper");
                continue;
            }
            if events.watch(&socket, Source::Pending).is_ok() {
                self.pending = Some(DaemonConnection::new(socket));
            }
        }
    }

    /// Receives the first message of a pending connection. Returns whether it is in charge now. What was not sent to
    /// the previous daemon is in the list that the new one received.
    pub(super) fn receive_hello(&mut self, programs: &Supervisor) -> bool {
        let Some(mut connection) = self.pending.take() else { return false };
        match connection.receive().and_then(|()| connection.next()) {
            Ok(None) => self.pending = Some(connection),
            Ok(Some(ToKeeper::Hello { protocol, oldest, version })) => {
                return self.accept_hello(connection, (oldest, protocol), &version, programs);
            }
            Ok(Some(_)) => log::line("closed a connection that did not begin with a hello"),
            Err(ConnectionClosed::Gone) => {}
            Err(why) => log::line(&format!("closed a connection: {why}")),
        }
        false
    }

    fn accept_hello(
        &mut self,
        mut connection: DaemonConnection,
        (oldest, newest): (u32, u32),
        version: &str,
        programs: &Supervisor,
    ) -> bool {
        let is_known = is_understood(oldest, newest);
        let sent = connection
            .add(&self.hello(programs))
            .and_then(|()| if is_known { send_list(&mut connection, &programs.list()) } else { connection.flush() });
        if !is_known {
            // Such a daemon reconnects every two seconds as long as a program runs.
            if self.unknown_protocol.replace((oldest, newest)) != Some((oldest, newest)) {
                log::line(&format!(
                    "a daemon of version {version} speaks only unknown protocols, {oldest} to {newest}"
                ));
            }
            return false;
        }
        if let Err(why) = sent {
            log::line(&format!("closed the connection of a daemon: {why}"));
            return false;
        }
        self.daemon = Some(connection);
        true
    }

    fn hello(&self, programs: &Supervisor) -> FromKeeper {
        let (oldest, protocol) = spoken();
        let suffix = if fail::plays(fail::OTHER_VERSION) { "-other" } else { "" };
        let version = format!("{}{suffix}", self.version);
        FromKeeper::Hello { protocol, oldest, version, pid: std::process::id(), warnings: programs.warnings() }
    }

    /// Reads what the daemon sent. The messages have to be handled before the error, if there is one.
    pub(super) fn receive(&mut self) -> Result<(), ConnectionClosed> {
        match self.daemon.as_mut() {
            Some(connection) if connection.waits.0 => connection.receive(),
            _ => Ok(()),
        }
    }

    /// The next complete message of the daemon.
    pub(super) fn next_message(&mut self) -> Option<ToKeeper> {
        match self.daemon.as_mut()?.next() {
            Ok(message) => message,
            Err(why) => {
                self.close_daemon(&why);
                None
            }
        }
    }

    /// Sends reports to the daemon. Without a daemon they are in the list for the next one.
    pub(super) fn send(&mut self, news: &[FromKeeper], may_read: bool, events: &Events) {
        self.last_sent = clock::now();
        for message in news {
            match message {
                FromKeeper::Started { .. } => fail::point("keeper-before-started-told"),
                FromKeeper::Ended { .. } => fail::point("keeper-after-exit-written"),
                FromKeeper::Hello { .. }
                | FromKeeper::Listed { .. }
                | FromKeeper::Refused { .. }
                | FromKeeper::Pong { .. } => {}
            }
        }
        let Some(connection) = self.daemon.as_mut() else { return };
        match news.iter().try_for_each(|message| connection.add(message)).and_then(|()| connection.flush()) {
            Ok(()) => self.watch(may_read, events),
            Err(why) => self.close_daemon(&why),
        }
    }

    /// Waits for the daemon's messages if they may be read, and for room to write if there is something to send.
    pub(super) fn watch(&mut self, may_read: bool, events: &Events) {
        let Some(connection) = self.daemon.as_mut() else { return };
        let waits = (may_read, connection.is_behind());
        let changed = events.change(connection.socket(), Source::Daemon, waits.0, waits.1);
        connection.waits = waits;
        if let Err(error) = changed {
            self.close_daemon(&ConnectionClosed::Io(error));
        }
    }

    /// Ends the connection to the daemon.
    pub(super) fn close_daemon(&mut self, why: &ConnectionClosed) {
        if !matches!(why, ConnectionClosed::Gone) {
            log::line(&format!("closed the connection of the daemon: {why}"));
        }
        self.daemon = None;
    }

    /// Waits for the daemon to read the remaining messages, for a limited time. The next keeper lists what it does not
    /// read.
    pub(super) fn say_farewell(&mut self, events: &mut Events) {
        let until = clock::now() + FAREWELL;
        while let Some(connection) = self.daemon.as_mut()
            && connection.flush().is_ok()
            && connection.is_behind()
            && clock::now() < until
        {
            self.watch(true, events);
            if events.wait(Some(until), clock::now()).is_err() {
                return;
            }
        }
    }
}

/// Sends all programs in parts, of which there is at least one.
fn send_list(connection: &mut DaemonConnection, programs: &[ListedProgram]) -> Result<(), ConnectionClosed> {
    let mut parts = programs.chunks(LISTED_MAX).peekable();
    if parts.peek().is_none() {
        connection.add(&FromKeeper::Listed { programs: Vec::new(), is_last: true })?;
    }
    while let Some(part) = parts.next() {
        connection.add(&FromKeeper::Listed { programs: part.to_vec(), is_last: parts.peek().is_none() })?;
    }
    connection.flush()
}
