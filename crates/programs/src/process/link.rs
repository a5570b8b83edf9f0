//! The connection to the keeper as the process table sees it: whether messages can be sent, the list that the keeper
//! sends first, and the replacement of a keeper of another version.

use std::sync::Arc;

use cronhold_keeper::ListedProgram;
use cronhold_keeper::client::ConnectionError;

/// The connection to the keeper.
#[derive(Debug)]
pub(super) struct KeeperLink {
    state: LinkState,
    replacement: Replacement,
    /// Why the keeper cannot start programs; `None` if it can.
    problem: Option<Arc<str>>,
    /// Whether the keeper does not respond.
    is_silent: bool,
}

/// The problem of a keeper that has not been reached yet.
pub const KEEPER_PENDING: &str = "the keeper has not replied yet";

#[derive(Debug)]
enum LinkState {
    /// There has been no connection yet.
    New,
    /// There is no connection.
    Down(ConnectionError),
    /// The keeper is sending the list of its programs; the part that has arrived.
    Listing(Vec<ListedProgram>),
    /// Messages can be sent.
    Up,
    /// The keeper was asked to retire and does so immediately.
    Retiring,
}

/// Whether the keeper is to be replaced because its version differs from the daemon's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replacement {
    /// The versions are equal.
    NotNeeded,
    /// The keeper is asked to retire as soon as it runs no program.
    Pending,
    /// This daemon has replaced a keeper once. The new keeper has the only version available.
    Done,
}

impl Default for KeeperLink {
    fn default() -> Self {
        let problem = Some(Arc::from(KEEPER_PENDING));
        Self { state: LinkState::New, replacement: Replacement::NotNeeded, problem, is_silent: false }
    }
}

impl KeeperLink {
    /// There is a connection. The list follows.
    pub(super) fn connected(&mut self, is_other_version: bool) {
        self.state = LinkState::Listing(Vec::new());
        if self.replacement != Replacement::Done {
            self.replacement = if is_other_version { Replacement::Pending } else { Replacement::NotNeeded };
        }
    }

    /// There is no connection. Returns whether that should be logged: not for each attempt that fails for the same kind
    /// of reason, and not for a keeper that was asked to retire.
    pub(super) fn disconnected(&mut self, error: ConnectionError) -> bool {
        let is_news = match &self.state {
            LinkState::New | LinkState::Listing(_) | LinkState::Up => true,
            LinkState::Down(before) => std::mem::discriminant(before) != std::mem::discriminant(&error),
            LinkState::Retiring => false,
        };
        // A keeper that was asked to retire is replaced at once.
        if is_news {
            self.problem = Some(error.to_string().into());
        }
        self.is_silent = false;
        self.state = LinkState::Down(error);
        is_news
    }

    /// The keeper does not respond. The connection stays.
    pub(super) fn silent(&mut self, why: String) {
        if self.is_up() && !std::mem::replace(&mut self.is_silent, true) {
            self.problem = Some(why.into());
        }
    }

    /// The keeper sent a message, so it responds.
    pub(super) fn responded(&mut self) {
        if std::mem::take(&mut self.is_silent) {
            self.problem = None;
        }
    }

    /// The keeper reports whether it can start programs.
    pub(super) fn report_problem(&mut self, problem: Option<String>) {
        if self.is_up() {
            self.problem = problem.map(Arc::from);
        }
    }

    /// Why the keeper cannot start programs; `None` if it can.
    pub(super) fn problem(&self) -> Option<Arc<str>> {
        self.problem.clone()
    }

    /// Whether a launch can be sent. A keeper that does not respond gets none, because its outcome would be unknown.
    pub(super) fn may_launch(&self) -> bool {
        self.is_up() && !self.is_silent
    }

    /// Takes a part of the list, and returns the whole list with the last part.
    pub(super) fn receive_list(&mut self, programs: Vec<ListedProgram>, is_last: bool) -> Option<Vec<ListedProgram>> {
        let LinkState::Listing(list) = &mut self.state else { return None };
        list.extend(programs);
        if !is_last {
            return None;
        }
        let list = std::mem::take(list);
        self.state = LinkState::Up;
        self.problem = None;
        Some(list)
    }

    /// Whether messages can be sent.
    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, LinkState::Up)
    }

    /// Whether the keeper is to be asked to retire as soon as it is idle.
    pub(super) fn is_replacement_pending(&self) -> bool {
        self.is_up() && self.replacement == Replacement::Pending
    }

    /// The keeper is asked to retire. No other message follows on this connection.
    pub(super) fn retire(&mut self) {
        self.replacement = Replacement::Done;
        self.state = LinkState::Retiring;
    }
}
