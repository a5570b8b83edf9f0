//! What the node asks of its processes.

use std::sync::Arc;

use cronhold_core::command::Report;
use cronhold_core::record::Run;
use cronhold_core::signal::Signal;
use cronhold_core::{RunId, State};
use cronhold_schedule::Span;

use super::{At, Known, Line, Processes, WANTS_MAX, Want, verdict};

impl Processes {
    /// Whether a run has a process here.
    pub fn has(&self, run: RunId) -> bool {
        self.known.contains_key(&run)
    }

    /// Whether all processes are known: the keeper has listed what it has, and the node has asked for what it wants.
    pub fn has_all(&self) -> bool {
        self.is_ready && matches!(self.line, Line::Up)
    }

    /// Whether a run has a process that was first asked for in this life.
    pub fn is_new(&self, run: RunId) -> bool {
        self.known.get(&run).is_some_and(|known| known.is_new)
    }

    /// Starts a run's program by an uptime, unless it was asked for before. With a lease it is dead by another uptime, if
    /// that is not extended.
    pub fn launch(&mut self, run: Arc<Run>, fence: Option<u64>, launch_by: Span, kill_at: Option<Span>) {
        if self.known.contains_key(&run.id) {
            return;
        }
        self.await_launch(run.id, launch_by);
        let id = run.id;
        self.known.insert(id, Known { run: Some(run), fence, launch_by, kill_at, ..Known::new(At::Waiting) });
    }

    /// Goes on with a run's program that may have been started before. A node that asks for one that is known has missed
    /// something, or fears so: it hears what was last told, and what is still to come it hears anyway.
    pub fn adopt(&mut self, run: Arc<Run>) {
        let (id, state) = (run.id, run.state);
        let Some(known) = self.known.get_mut(&id) else {
            self.known.insert(id, Known { run: Some(run), ..Known::new(At::Sought) });
            if matches!(self.line, Line::Up) {
                let found = self.strays.remove(&id);
                self.found(id, found);
            }
            return;
        };
        known.is_settled = false;
        match known.at {
            At::Running if state == State::Stopping && known.stop.is_none() => {
                known.stop = Some((run.terms.signal, run.terms.grace));
                self.wants.push_back(Want::Stop(id));
            }
            At::Running if state == State::Starting => self.report(id, Report::Launched),
            At::Told => {
                if let Some(told) = known.told.clone() {
                    self.report(id, told);
                }
            }
            At::Waiting | At::Asked | At::Unsure | At::Sought | At::Running | At::Ended(_) | At::Lost => {}
        }
    }

    /// Programs may live until these uptimes. What comes out of order makes no lease shorter, and one that has ended is
    /// not extended by the keeper.
    pub fn extend(&mut self, leases: &[(RunId, Span)]) {
        for (run, kill_at) in leases {
            let Some(known) = self.known.get_mut(run) else { continue };
            let is_over = matches!(known.at, At::Ended(_) | At::Lost | At::Told);
            if is_over || known.kill_at.is_some_and(|before| before >= *kill_at) {
                continue;
            }
            known.kill_at = Some(*kill_at);
            if matches!(known.at, At::Asked | At::Running) {
                self.leases.insert(*run);
            }
        }
    }

    /// Asks a run's program to end, as its job says.
    pub fn stop(&mut self, run: &Run) {
        self.end(run.id, run.terms.signal, run.terms.grace);
    }

    /// Sends a run's program a signal. The one that ends it for sure must not get lost, so it is a stop without grace.
    pub fn signal(&mut self, run: RunId, signal: Signal) {
        if signal == Signal::KILL {
            return self.end(run, signal, Span::ZERO);
        }
        match self.known.get(&run) {
            Some(_) if self.wants.len() < WANTS_MAX => self.wants.push_back(Want::Signal(run, signal)),
            // Nobody takes them at all, and there is no end of them.
            Some(_) => {}
            None => self.report(run, Report::Lost),
        }
    }

    /// The node has asked for everything that its earlier lives have left.
    pub fn ready(&mut self) {
        if !std::mem::replace(&mut self.is_ready, true) && matches!(self.line, Line::Up) {
            self.take_stock();
        }
    }

    /// A run is over for the store: what the keeper knows of it is not needed any longer.
    pub fn settled(&mut self, run: RunId) {
        let Some(known) = self.known.get_mut(&run) else { return };
        known.is_settled = true;
        match known.at {
            At::Told => self.let_go(run),
            At::Waiting => {
                self.deadlines.remove(&(known.launch_by, run));
                self.known.remove(&run);
            }
            // It is let go of when it has ended.
            At::Asked | At::Unsure | At::Sought | At::Running | At::Ended(_) | At::Lost => {}
        }
    }

    fn end(&mut self, run: RunId, signal: Signal, grace: Span) {
        let Some(known) = self.known.get_mut(&run) else { return self.report(run, Report::Lost) };
        match known.at {
            // Nobody has to start a program that is to end at once.
            At::Waiting => {
                self.deadlines.remove(&(known.launch_by, run));
                self.tell(run, verdict::never_started(signal));
            }
            At::Asked | At::Unsure | At::Sought | At::Running => {
                // What ends it for sure is not taken back, and a stop that comes twice begins only one grace.
                let is_news = known.stop.is_none_or(|(before, _)| before != signal && before != Signal::KILL);
                if is_news {
                    known.stop = Some((signal, grace));
                    self.wants.push_back(Want::Stop(run));
                }
            }
            At::Ended(_) | At::Lost | At::Told => {}
        }
    }
}
