//! What others carry away: messages to the keeper, reports to the node, outputs to the store, words to the log.

use std::collections::BTreeSet;
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::command::Report;
use cronhold_keeper::{RunKey, ToKeeper};
use cronhold_schedule::Span;

use super::{At, Due, FORGET_MAX, Finish, Known, LAUNCH_WITHIN, Line, PART_AFTER, Processes, Succession, Want};

impl Processes {
    /// What is to be said to the keeper next, if it can be said now.
    pub fn next(&mut self, uptime: Span) -> Option<Due> {
        if !matches!(self.line, Line::Up) {
            return None;
        }
        if self.succession == Succession::Due && self.is_idle() {
            self.succession = Succession::Done;
            self.line = Line::Leaving;
            return Some(Due::Say(ToKeeper::Retire));
        }
        // First, because a lease that is said too late has ended.
        if let Some(lease) = self.next_lease() {
            return Some(Due::Say(lease));
        }
        while let Some(want) = self.wants.pop_front() {
            let (Want::Launch(id) | Want::Stop(id) | Want::Signal(id, _)) = want;
            let Some(known) = self.known.get_mut(&id) else { continue };
            let run = RunKey(id.bits());
            match (want, known.at) {
                // What comes too late is left to its deadline.
                (Want::Launch(_), At::Waiting) if known.launch_by > uptime => {
                    self.deadlines.remove(&(known.launch_by, id));
                    known.at = At::Asked;
                    let Known { run: Some(run), fence, launch_by, kill_at, .. } = known else { continue };
                    let (run, fence, launch_by, kill_at) = (Arc::clone(run), *fence, *launch_by, *kill_at);
                    return Some(Due::Launch { run, fence, launch_by, kill_at });
                }
                (Want::Stop(_), At::Running) => {
                    let Some((signal, grace)) = known.stop else { continue };
                    let (signal, grace) = (signal.number(), grace.micros());
                    return Some(Due::Say(ToKeeper::Stop { run, signal, grace }));
                }
                (Want::Signal(_, signal), At::Running) => {
                    return Some(Due::Say(ToKeeper::Signal { run, signal: signal.number() }));
                }
                // It comes again when the program is found to run, or is of no use any more.
                _ => {}
            }
        }
        let runs: Vec<RunKey> = self.forget.drain(..self.forget.len().min(FORGET_MAX)).collect();
        (!runs.is_empty()).then_some(Due::Say(ToKeeper::Forget { runs }))
    }

    /// The next lease that the keeper has to know of. One of a program that is not there yet goes with its launch, and
    /// one of a program that is looked for is said when it is found.
    fn next_lease(&mut self) -> Option<ToKeeper> {
        while let Some(id) = self.leases.pop_first() {
            if let Some(known) = self.known.get(&id)
                && let (At::Asked | At::Running, Some(kill_at)) = (known.at, known.kill_at)
            {
                return Some(ToKeeper::Lease { run: RunKey(id.bits()), kill_at: kill_at.micros() });
            }
        }
        None
    }

    /// Takes out up to so many reports that there are by now.
    pub fn take(&mut self, uptime: Span, most: usize) -> Vec<(RunId, Report)> {
        while let Some((_, run)) = self.deadlines.first().copied().filter(|(at, _)| *at <= uptime) {
            self.deadlines.pop_first();
            let why = match &self.line {
                Line::Down(why) => why.clone(),
                Line::Listing(_) | Line::Up | Line::Leaving => format!("did not take it within {LAUNCH_WITHIN}"),
            };
            self.tell(run, Report::NotLaunched(format!("the keeper {why}")));
        }
        let count = self.reports.len().min(most);
        let taken: Vec<(RunId, Report)> = self.reports.drain(..count).collect();
        for (run, _) in &taken {
            if self.known.get(run).is_some_and(|known| known.is_settled && known.at == At::Told) {
                self.partings.insert((uptime.plus(PART_AFTER), *run));
            }
        }
        taken
    }

    /// Lets go of programs whose runs were over before they ended, when the node was told long ago: a report that
    /// changes nothing is not answered. True when the keeper is to be told.
    pub fn part(&mut self, uptime: Span) -> bool {
        let mut has_parted = false;
        while let Some((_, run)) = self.partings.first().copied().filter(|(at, _)| *at <= uptime) {
            self.partings.pop_first();
            if self.known.get(&run).is_some_and(|known| known.is_settled && known.at == At::Told) {
                self.let_go(run);
                has_parted = true;
            }
        }
        has_parted
    }

    /// When there is a report to be taken or something to part with: at once, at some uptime, or never as things are.
    pub fn due(&self) -> Option<Span> {
        let first = |times: &BTreeSet<(Span, RunId)>| times.first().map(|(at, _)| *at);
        let later = [&self.deadlines, &self.partings].into_iter().filter_map(first).min();
        if self.reports.is_empty() { later } else { Some(Span::ZERO) }
    }

    /// Takes out up to so many programs whose outputs have to be stored to the end.
    pub fn take_finishing(&mut self, most: usize) -> Vec<Finish> {
        let count = self.finishing.len().min(most);
        self.finishing.drain(..count).collect()
    }

    /// Programs that run.
    pub fn running(&self) -> impl Iterator<Item = RunId> {
        self.known.iter().filter(|(_, known)| known.at == At::Running).map(|(run, _)| *run)
    }

    /// Whether the keeper has nothing to do. One that makes room starts nothing more, so it is asked only then.
    fn is_idle(&self) -> bool {
        let is_with_keeper = |known: &Known| matches!(known.at, At::Asked | At::Running);
        self.is_ready && !self.known.values().any(is_with_keeper)
    }

    /// Takes out what people should know, each with whether it is trouble.
    pub fn take_words(&mut self) -> Vec<(bool, String)> {
        std::mem::take(&mut self.words)
    }
}
