//! The turn: load, decide, commit. Everything that changes anything goes through here, many commands at a time.
//!
//! Commands are decided in their order, each on what the ones before it will have written. A unit that loses against
//! someone else is decided again from what is stored then; one whose outcome is unknown is looked up by its version.
//!
//! A turn has three parts, so that the next can be prepared while one is in the air: a writer knows the versions of what
//! it has sent, and a unit that builds on one that failed fails too.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use cronhold_core::World;
use cronhold_core::command::{Command, Stamp};
use cronhold_core::decide::decide;
use cronhold_core::decision::{Decision, Done, Rejection};
use cronhold_core::record::{Key, Kind, LockName, Version};
use cronhold_core::view::{Records, View};

use crate::desk::{Desk, Sheaf, Sheet};
use crate::{Committed, Fault, Pending, Refusal, Unit};

/// A decision may ask for records so many times, and once more for those that were only remembered.
const NEEDS_MAX: usize = 4 + 1;

/// A command with its stamp.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// When, by whom and where.
    pub stamp: Stamp,
    /// What.
    pub command: Command,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It is done and durable.
    Done {
        /// What was written, and what is to be done now.
        done: Box<Done>,
        /// The fences of the locks that were taken.
        fences: Vec<(LockName, u64)>,
    },
    /// The core said no.
    Rejected(Rejection),
    /// The store failed. When the fault is [`Fault::Unknown`] it may have been done.
    Failed(Fault),
}

/// Commands that were decided and are not sent yet.
#[allow(missing_debug_implementations, clippy::allow_attributes, reason = "a future cannot be printed")]
pub struct Prepared {
    decided: Vec<Decided>,
    /// What the units will have written.
    written: Sheaf,
    /// Their commit, which a store has made ready; it begins when it is first looked at. None when there is no unit.
    commit: Option<Commit>,
}

/// Units that were sent, until it is known what came of them.
#[allow(missing_debug_implementations, clippy::allow_attributes, reason = "a future cannot be printed")]
pub struct Flight {
    decided: Vec<Decided>,
    answer: Answered,
}

/// A command that was decided.
#[derive(Debug)]
enum Decided {
    /// There is nothing to be written.
    Settled(Option<Outcome>),
    Unit(Unit, Box<Done>),
}

enum Answered {
    Pending(Commit),
    Ready(Vec<Result<Committed, Refusal>>),
}

type Commit = Pending<'static, Vec<Result<Committed, Refusal>>>;

impl Desk {
    /// Carries out commands and answers for each.
    pub async fn turn(&mut self, world: &World, asked: &[Asked]) -> Vec<Outcome> {
        let mut outcomes: Vec<Option<Outcome>> = vec![None; asked.len()];
        for _ in 0..Self::ATTEMPTS_MAX {
            let open: Vec<usize> = (0..asked.len()).filter(|index| outcomes[*index].is_none()).collect();
            if open.is_empty() {
                break;
            }
            let again: Vec<&Asked> = open.iter().map(|index| &asked[*index]).collect();
            let landed = match self.prepare(world, &again).await {
                Ok(prepared) => {
                    let flight = self.send(prepared).await;
                    self.land(flight).await
                }
                Err(fault) => vec![Some(Outcome::Failed(fault)); open.len()],
            };
            open.into_iter().zip(landed).for_each(|(index, outcome)| outcomes[index] = outcome);
        }
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(Outcome::contended)).collect()
    }

    /// Decides commands in their order, on what is stored and on what is on its way there. When one needs records, those
    /// that the following need are loaded with them.
    pub async fn prepare(&mut self, world: &World, asked: &[&Asked]) -> Result<Prepared, Fault> {
        let versions: Vec<Version> = asked.iter().map(|_| self.next_version()).collect();
        let mut versions = versions.into_iter();
        let is_shared = self.store.is_shared();
        let mut sheet = Sheet::new(&self.memory, &self.in_flight);
        if !self.overlooked.is_empty() {
            sheet.load(&*self.store, std::mem::take(&mut self.overlooked)).await?;
        }
        let mut decided: Vec<Decided> = Vec::with_capacity(asked.len());
        let mut asked_of_one = 0;
        loop {
            let before = decided.len();
            let mut needs = BTreeSet::new();
            for Asked { stamp, command } in &asked[before..] {
                let view = View::new(&sheet, world, stamp);
                let decision = decide(&view, command);
                let reads = view.into_reads();
                match trusted(decision, &reads, &sheet, is_shared) {
                    Decision::Need(keys) => match sheet.fault_of(&keys) {
                        None => needs.extend(keys),
                        Some(_) if !needs.is_empty() => {}
                        Some(fault) => decided.push(Decided::Settled(Some(Outcome::Failed(fault.clone())))),
                    },
                    // What stands behind one that waits for records is decided after it.
                    _ if !needs.is_empty() => {}
                    Decision::Reject(rejection) => decided.push(Decided::Settled(Some(Outcome::Rejected(rejection)))),
                    Decision::Done(done) if changes_nothing(&done) => {
                        let outcome = Outcome::Done { done: Box::new(done), fences: Vec::new() };
                        decided.push(Decided::Settled(Some(outcome)));
                    }
                    Decision::Done(done) => {
                        let version = versions.next().expect("there is a version for each command");
                        let unit = unit(version, &reads, &sheet, &done);
                        sheet.write(&unit);
                        decided.push(Decided::Unit(unit, Box::new(done)));
                    }
                }
            }
            if needs.is_empty() {
                break;
            }
            asked_of_one = if decided.len() == before { asked_of_one + 1 } else { 1 };
            if asked_of_one > NEEDS_MAX {
                // The one that asks too much fails, and not those that came with it.
                let fault = Fault::Broken(format!("a decision needs too much: {needs:?}"));
                decided.push(Decided::Settled(Some(Outcome::Failed(fault))));
                asked_of_one = 0;
                continue;
            }
            sheet.load(&*self.store, needs).await?;
        }
        let Sheet { written, loaded, .. } = sheet;
        loaded.into_iter().for_each(|(key, stored)| self.memory.remember(key, stored));
        let units: Vec<Unit> = decided.iter().filter_map(Decided::unit).cloned().collect();
        let commit = (!units.is_empty()).then(|| Arc::clone(&self.store).prepare_commit(units));
        Ok(Prepared { decided, written, commit })
    }

    /// Sends what was decided. What is prepared from now on builds on it. Only one flight may be in the air.
    pub async fn send(&mut self, prepared: Prepared) -> Flight {
        let Prepared { decided, written, commit } = prepared;
        assert!(self.in_flight.is_empty(), "the flight before has not landed");
        self.in_flight = written;
        let Some(mut answer) = commit else {
            return Flight { decided, answer: Answered::Ready(Vec::new()) };
        };
        // The first look starts it.
        let first = poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await;
        let answer = match first {
            Poll::Ready(results) => Answered::Ready(results),
            Poll::Pending => Answered::Pending(answer),
        };
        Flight { decided, answer }
    }

    /// Waits for what came of a flight. Commands that lost against someone else have no outcome, and have to be decided
    /// again.
    pub async fn land(&mut self, flight: Flight) -> Vec<Option<Outcome>> {
        let results = match flight.answer {
            Answered::Ready(results) => results,
            Answered::Pending(answer) => answer.await,
        };
        self.in_flight.clear();
        let mut results = results.into_iter();
        let mut outcomes = Vec::with_capacity(flight.decided.len());
        let mut is_doubtful = false;
        for decided in flight.decided {
            let (unit, done) = match decided {
                // What writes nothing may rest on a unit before it that did not come to be, and nothing compares that.
                Decided::Settled(outcome) => {
                    outcomes.push(outcome.filter(|_| !is_doubtful));
                    continue;
                }
                Decided::Unit(unit, done) => (unit, done),
            };
            let result = match results.next().expect("a store answers for every unit") {
                Err(Refusal::Fault(Fault::Unknown(_))) => self.find_out(&unit).await,
                known => known,
            };
            is_doubtful |= result.is_err();
            outcomes.push(self.learn(&unit, done, result));
        }
        self.is_shaken = is_doubtful;
        outcomes
    }

    fn learn(&mut self, unit: &Unit, done: Box<Done>, result: Result<Committed, Refusal>) -> Option<Outcome> {
        let refusal = match result {
            Ok(Committed { fences }) => {
                self.memory.learn(unit);
                return Some(Outcome::Done { done, fences });
            }
            Err(refusal) => refusal,
        };
        unit.compare.iter().for_each(|(key, _)| self.memory.forget(key));
        match refusal {
            Refusal::Fault(fault) => Some(Outcome::Failed(fault)),
            Refusal::Conflict(_) => {
                let absent = unit.compare.iter().filter(|(_, version)| version.is_none());
                self.overlooked.extend(absent.map(|(key, _)| key.clone()));
                None
            }
            Refusal::Held { .. } => None,
        }
    }
}

impl Prepared {
    /// What it was decided on did not come to be, at least in part. Units notice that by themselves; what writes nothing
    /// has to be decided again.
    pub fn doubt(&mut self) {
        for decided in &mut self.decided {
            if let Decided::Settled(outcome) = decided {
                *outcome = None;
            }
        }
    }
}

impl Decided {
    fn unit(&self) -> Option<&Unit> {
        match self {
            Self::Unit(unit, _) => Some(unit),
            Self::Settled(_) => None,
        }
    }
}

impl Outcome {
    /// Others were always faster.
    pub fn contended() -> Self {
        Self::Failed(Fault::Away("others keep changing the same records".to_owned()))
    }
}

/// A decision that writes is checked by its commit. One that writes nothing is not, so on a shared store it must not
/// rest on what is only remembered.
fn trusted(decision: Decision, reads: &BTreeSet<Key>, sheet: &Sheet<'_>, is_shared: bool) -> Decision {
    let is_unchecked = match &decision {
        Decision::Need(_) => false,
        Decision::Reject(_) => true,
        Decision::Done(done) => changes_nothing(done),
    };
    if !is_shared || !is_unchecked {
        return decision;
    }
    let remembered: Vec<Key> = reads.iter().filter(|key| sheet.is_remembered(key)).cloned().collect();
    if remembered.is_empty() { decision } else { Decision::Need(remembered) }
}

fn changes_nothing(done: &Done) -> bool {
    done.changes.is_empty() && done.take.is_empty() && done.free.is_empty()
}

/// The unit of a decision: it compares all that the decision has read. Locks are checked where they are taken.
fn unit(version: Version, reads: &BTreeSet<Key>, sheet: &Sheet<'_>, done: &Done) -> Unit {
    let seen = |key: &Key| sheet.get(key).flatten().map(|stored| stored.version);
    let compared = reads.iter().filter(|key| key.kind() != Kind::Lock);
    Unit {
        version,
        compare: compared.map(|key| (key.clone(), seen(key))).collect(),
        changes: done.changes.clone(),
        take: done.take.clone(),
        free: done.free.clone(),
    }
}
