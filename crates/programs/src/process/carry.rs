//! What others carry away: messages to the keeper, reports to the node, outputs to the store, words to the log.

use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::command::Report;
use cronhold_keeper::{RunKey, Stage, ToKeeper};
use cronhold_schedule::Span;

use super::{At, Due, FORGET_MAX, Finish, Known, LAUNCH_WITHIN, Line, Processes, Succession, Want};

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
        while let Some(want) = self.wants.pop_front() {
            let (Want::Launch(id) | Want::Stop(id) | Want::Signal(id, _)) = want;
            let Some(known) = self.known.get_mut(&id) else { continue };
            let run = RunKey(id.bits());
            match (want, known.at) {
                // What comes too late is left to its deadline.
                (Want::Launch(_), At::Waiting) if known.launch_by > uptime => {
                    self.deadlines.remove(&(known.launch_by, id));
                    known.at = At::Asked;
                    let Known { run, fence, launch_by, .. } = known;
                    return Some(Due::Launch { run: Arc::clone(run), fence: *fence, launch_by: *launch_by });
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
        self.reports.drain(..count).collect()
    }

    /// When there is a report to be taken: at once, at some uptime, or never as things are.
    pub fn due(&self) -> Option<Span> {
        if self.reports.is_empty() { self.deadlines.first().map(|(at, _)| *at) } else { Some(Span::ZERO) }
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
        let is_running = |stage: &Stage| matches!(stage, Stage::Running { .. });
        let is_with_keeper = |known: &Known| matches!(known.at, At::Asked | At::Running);
        self.is_ready && !self.strays.values().any(is_running) && !self.known.values().any(is_with_keeper)
    }

    /// Takes out what people should know, each with whether it is trouble.
    pub fn take_words(&mut self) -> Vec<(bool, String)> {
        std::mem::take(&mut self.words)
    }
}
