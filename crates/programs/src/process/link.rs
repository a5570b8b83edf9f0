//! The connection to the keeper as the process table sees it: whether messages can be sent, the list that the keeper
//! sends first, and the replacement of a keeper of another version.

use cronhold_keeper::ListedProgram;
use cronhold_keeper::client::ConnectionError;

/// The connection to the keeper.
#[derive(Debug)]
pub(super) struct KeeperLink {
    state: LinkState,
    replacement: Replacement,
}

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
        Self { state: LinkState::New, replacement: Replacement::NotNeeded }
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
        self.state = LinkState::Down(error);
        is_news
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

    /// Why there is no connection; `None` if there is one.
    pub(super) fn error(&self) -> Option<String> {
        match &self.state {
            LinkState::New => Some("the keeper has not answered yet".to_owned()),
            LinkState::Down(error) => Some(error.to_string()),
            LinkState::Listing(_) | LinkState::Up | LinkState::Retiring => None,
        }
    }
}
