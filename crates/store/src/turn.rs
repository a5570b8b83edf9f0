//! The turn: load, decide, commit. Every change of a record goes through a turn, many commands at a time.
//!
//! Commands are decided in order, each on top of what the commands before it will write. A command that loses a conflict
//! is decided again on what is stored then. If the outcome of a unit is unknown, it is looked up by the unit's version.
//!
//! A turn has three parts (prepare, submit, complete), so that the next turn can be prepared while one is being committed:
//! a writer knows the versions of what it has submitted, and a unit that builds on a failed one fails too.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use cronhold_core::DecisionContext;
use cronhold_core::command::{Command, CommandStamp};
use cronhold_core::decide::decide;
use cronhold_core::decision::{DecidedUnit, Decision, Rejection};
use cronhold_core::record::{LockName, RecordKey, RecordKind, RecordVersion};
use cronhold_core::view::{DecisionView, RecordSource};

use crate::writer_session::{RecordMap, TurnView, WriterSession};
use crate::{AheadCommit, CommitFuture, Fault, Unit, UnitReceipt, UnitRefusal, UnreadableRecord};

/// How often a decision may request records: four rounds, and one more for records that only the cache had.
const LOADS_MAX: usize = 4 + 1;

/// A command with its stamp.
#[derive(Debug, Clone, PartialEq)]
pub struct StampedCommand {
    /// When the command was requested, by which actor, and on which node.
    pub stamp: CommandStamp,
    pub command: Command,
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandOutcome {
    /// The command is carried out, and its changes are durable.
    Done {
        /// What was written, and the effects that follow.
        done: Box<DecidedUnit>,
        /// The fences of the locks that were taken.
        fences: Vec<(LockName, u64)>,
    },
    /// The core rejected the command.
    Rejected(Rejection),
    /// The command needs a record that cannot be read. Nothing was written, and a retry fails too until the record is
    /// repaired.
    Unreadable(Box<UnreadableRecord>),
    /// Other writers kept changing the same records. Nothing was written, and the store works.
    Contended,
    /// The store failed. If the fault is [`Fault::OutcomeUnknown`], the changes may have been written.
    Failed(Fault),
}

/// Commands that are decided and not submitted yet.
#[allow(missing_debug_implementations, clippy::allow_attributes, reason = "a future cannot be printed")]
pub struct PreparedTurn {
    decided: Vec<DecidedCommand>,
    /// What the units will have written.
    written: RecordMap,
    /// The commit, which starts when it is first polled; `None` if there are no units.
    commit: Option<CommitFuture>,
}

/// Commands that are decided some time before they are submitted together.
#[allow(missing_debug_implementations, clippy::allow_attributes, reason = "a commit cannot be printed")]
pub struct AheadTurn {
    decided: Vec<DecidedCommand>,
    written: RecordMap,
    commit: Box<dyn AheadCommit>,
}

/// A turn whose units are submitted, until the store has answered.
#[allow(missing_debug_implementations, clippy::allow_attributes, reason = "a future cannot be printed")]
pub struct InFlightCommit {
    decided: Vec<DecidedCommand>,
    answer: CommitAnswer,
}

/// A command that is decided.
#[derive(Debug)]
enum DecidedCommand {
    /// Nothing has to be written. Without an outcome, the command has to be decided again.
    WithoutWrites(Option<CommandOutcome>),
    Unit(Unit, Box<DecidedUnit>),
}

enum CommitAnswer {
    Pending(CommitFuture),
    Ready(Vec<Result<UnitReceipt, UnitRefusal>>),
}

/// What a decision read; see [`DecisionView::into_reads`].
type ReadVersions = BTreeMap<RecordKey, Option<RecordVersion>>;

impl WriterSession {
    /// Carries out commands, and returns the outcome of each.
    pub async fn turn(&mut self, world: &DecisionContext, commands: &[StampedCommand]) -> Vec<CommandOutcome> {
        let mut outcomes: Vec<Option<CommandOutcome>> = vec![None; commands.len()];
        for _ in 0..Self::ATTEMPTS_MAX {
            let open: Vec<usize> = (0..commands.len()).filter(|index| outcomes[*index].is_none()).collect();
            if open.is_empty() {
                break;
            }
            let again: Vec<&StampedCommand> = open.iter().map(|index| &commands[*index]).collect();
            let results = match self.prepare(world, &again).await {
                Ok(prepared) => {
                    let commit = self.submit(prepared).await;
                    self.complete(commit).await
                }
                Err(fault) => vec![Some(CommandOutcome::Failed(fault)); open.len()],
            };
            open.into_iter().zip(results).for_each(|(index, outcome)| outcomes[index] = outcome);
        }
        outcomes.into_iter().map(|outcome| outcome.unwrap_or(CommandOutcome::Contended)).collect()
    }

    /// Decides commands in order, on top of what is stored and of what is submitted.
    pub async fn prepare(
        &mut self,
        world: &DecisionContext,
        commands: &[&StampedCommand],
    ) -> Result<PreparedTurn, Fault> {
        let in_flight = std::mem::take(&mut self.in_flight);
        let result = self.decide_all(world, commands, &in_flight).await;
        self.in_flight = in_flight;
        let (decided, written) = result?;
        let units: Vec<Unit> = units_of(&decided);
        let commit = (!units.is_empty()).then(|| Arc::clone(&self.store).prepare_commit(units));
        Ok(PreparedTurn { decided, written, commit })
    }

    /// Begins a turn whose commands are decided before they are due. No commit may be in flight until it is submitted or
    /// dropped.
    pub fn begin_ahead(&self) -> AheadTurn {
        let commit = Arc::clone(&self.store).begin_ahead();
        AheadTurn { decided: Vec::new(), written: RecordMap::default(), commit }
    }

    /// Decides commands on top of what is stored and of the turn's earlier commands, and adds them to the turn.
    pub async fn prepare_ahead(
        &mut self,
        turn: &mut AheadTurn,
        world: &DecisionContext,
        commands: &[&StampedCommand],
    ) -> Result<(), Fault> {
        let (decided, written) = self.decide_all(world, commands, &turn.written).await?;
        turn.commit.push(units_of(&decided));
        turn.decided.extend(decided);
        turn.written.extend(written);
        Ok(())
    }

    /// Decides commands in order, on top of what is stored and of what `submitted` will have written. When a command needs
    /// records, those that the following commands need are loaded with them. Returns what will be written.
    async fn decide_all(
        &mut self,
        world: &DecisionContext,
        commands: &[&StampedCommand],
        submitted: &RecordMap,
    ) -> Result<(Vec<DecidedCommand>, RecordMap), Fault> {
        let versions: Vec<RecordVersion> = commands.iter().map(|_| self.next_version()).collect();
        let mut versions = versions.into_iter();
        let is_shared = self.store.is_shared();
        let mut turn_view = TurnView::new(&*self.store, &self.cache, submitted);
        if !self.unexpected.is_empty() {
            turn_view.load(std::mem::take(&mut self.unexpected)).await?;
        }
        let mut decided: Vec<DecidedCommand> = Vec::with_capacity(commands.len());
        let mut loads_for_one = 0;
        loop {
            let before = decided.len();
            let mut needs = BTreeSet::new();
            for StampedCommand { stamp, command } in &commands[before..] {
                let view = DecisionView::new(&turn_view, world, stamp);
                let decision = decide(&view, command);
                let reads = view.into_reads();
                match verified(decision, &reads, &turn_view, is_shared) {
                    Decision::Need(keys) => match turn_view.unreadable(&keys) {
                        None => needs.extend(keys),
                        Some(_) if !needs.is_empty() => {}
                        Some(outcome) => decided.push(DecidedCommand::WithoutWrites(Some(outcome))),
                    },
                    // A command behind one that waits for records is decided after it.
                    _ if !needs.is_empty() => {}
                    Decision::Reject(rejection) => {
                        decided.push(DecidedCommand::WithoutWrites(Some(CommandOutcome::Rejected(rejection))));
                    }
                    Decision::Done(done) if changes_nothing(&done) => {
                        let outcome = CommandOutcome::Done { done: Box::new(done), fences: Vec::new() };
                        decided.push(DecidedCommand::WithoutWrites(Some(outcome)));
                    }
                    Decision::Done(done) => {
                        let version = versions.next().expect("there is a version for each command");
                        let unit = unit(version, &reads, &turn_view, &done);
                        turn_view.write(&unit);
                        decided.push(DecidedCommand::Unit(unit, Box::new(done)));
                    }
                }
            }
            if needs.is_empty() {
                break;
            }
            loads_for_one = if decided.len() == before { loads_for_one + 1 } else { 1 };
            if loads_for_one > LOADS_MAX {
                // Only the command that requests too many records fails.
                let fault =
                    Fault::Permanent(format!("a decision requests records more than {LOADS_MAX} times: {needs:?}"));
                decided.push(DecidedCommand::WithoutWrites(Some(CommandOutcome::Failed(fault))));
                loads_for_one = 0;
                continue;
            }
            turn_view.load(needs).await?;
        }
        let TurnView { written, loaded, .. } = turn_view;
        for decided in &decided {
            let compared = decided.unit().into_iter().flat_map(|unit| &unit.compare);
            self.cache.keep_jobs(compared.map(|(key, _)| key));
        }
        loaded.into_iter().for_each(|(key, stored)| self.cache.insert(key, stored));
        Ok((decided, written))
    }

    /// Submits a prepared turn. Turns that are prepared from now on build on it. Only one commit may be in flight.
    pub async fn submit(&mut self, prepared: PreparedTurn) -> InFlightCommit {
        let PreparedTurn { decided, written, commit } = prepared;
        assert!(self.in_flight.is_empty(), "the previous commit is not completed");
        self.in_flight = written;
        let Some(mut commit) = commit else {
            return InFlightCommit { decided, answer: CommitAnswer::Ready(Vec::new()) };
        };
        // The first poll starts the commit.
        let first = poll_fn(|context| Poll::Ready(commit.as_mut().poll(context))).await;
        let answer = match first {
            Poll::Ready(results) => CommitAnswer::Ready(results),
            Poll::Pending => CommitAnswer::Pending(commit),
        };
        InFlightCommit { decided, answer }
    }

    /// Waits for the results of a commit. Commands that lost a conflict have no outcome, and have to be decided again.
    pub async fn complete(&mut self, commit: InFlightCommit) -> Vec<Option<CommandOutcome>> {
        let results = match commit.answer {
            CommitAnswer::Ready(results) => results,
            CommitAnswer::Pending(answer) => answer.await,
        };
        self.in_flight.clear();
        let mut results = results.into_iter();
        let mut outcomes = Vec::with_capacity(commit.decided.len());
        let mut has_failed = false;
        for decided in commit.decided {
            let (unit, done) = match decided {
                // A command without writes may build on a unit before it that failed, and nothing has compared that.
                DecidedCommand::WithoutWrites(outcome) => {
                    outcomes.push(outcome.filter(|_| !has_failed));
                    continue;
                }
                DecidedCommand::Unit(unit, done) => (unit, done),
            };
            let result = match results.next().expect("a store returns a result for every unit") {
                Err(UnitRefusal::Fault(Fault::OutcomeUnknown(_))) => self.resolve_unknown(&unit).await,
                known => known,
            };
            has_failed |= result.is_err();
            outcomes.push(self.apply_result(&unit, done, result));
        }
        self.had_failures = has_failed;
        outcomes
    }

    fn apply_result(
        &mut self,
        unit: &Unit,
        done: Box<DecidedUnit>,
        result: Result<UnitReceipt, UnitRefusal>,
    ) -> Option<CommandOutcome> {
        let refusal = match result {
            Ok(UnitReceipt { fences }) => {
                self.cache.apply(unit);
                return Some(CommandOutcome::Done { done, fences });
            }
            Err(refusal) => refusal,
        };
        unit.compare.iter().for_each(|(key, _)| self.cache.evict(key));
        match refusal {
            UnitRefusal::Fault(fault) => Some(CommandOutcome::Failed(fault)),
            UnitRefusal::Conflict(key) => {
                let absent = unit.compare.iter().filter(|(_, version)| version.is_none());
                self.unexpected.extend(absent.map(|(key, _)| key.clone()).chain([key]));
                None
            }
            UnitRefusal::Held { .. } => None,
        }
    }
}

impl PreparedTurn {
    /// Makes commands without writes be decided again, because what they were decided on has changed at least in part.
    /// Units need no such care: their commit compares what they were decided on.
    pub fn invalidate_unwritten(&mut self) {
        for decided in &mut self.decided {
            if let DecidedCommand::WithoutWrites(outcome) = decided {
                *outcome = None;
            }
        }
    }
}

impl AheadTurn {
    /// How many commands are worth being prepared.
    pub fn commands_max(&self) -> usize {
        self.commit.units_max()
    }

    /// The turn, ready to be submitted.
    pub fn into_prepared(self) -> PreparedTurn {
        let Self { decided, written, commit } = self;
        let has_units = decided.iter().any(|decided| decided.unit().is_some());
        PreparedTurn { decided, written, commit: has_units.then(|| commit.commit()) }
    }
}

impl DecidedCommand {
    fn unit(&self) -> Option<&Unit> {
        match self {
            Self::Unit(unit, _) => Some(unit),
            Self::WithoutWrites(_) => None,
        }
    }
}

fn units_of(decided: &[DecidedCommand]) -> Vec<Unit> {
    decided.iter().filter_map(DecidedCommand::unit).cloned().collect()
}

/// Requests the cached records that a decision without writes was based on. The commit checks a decision that writes, but
/// nothing checks one that does not, so on a shared store it must not be based on cached records.
fn verified(decision: Decision, reads: &ReadVersions, view: &TurnView<'_>, is_shared: bool) -> Decision {
    let is_unchecked = match &decision {
        Decision::Need(_) => false,
        Decision::Reject(_) => true,
        Decision::Done(done) => changes_nothing(done),
    };
    if !is_shared || !is_unchecked {
        return decision;
    }
    let cached: Vec<RecordKey> = reads.keys().filter(|key| view.is_only_cached(key)).cloned().collect();
    if cached.is_empty() { decision } else { Decision::Need(cached) }
}

fn changes_nothing(done: &DecidedUnit) -> bool {
    done.changes.is_empty() && done.take.is_empty() && done.free.is_empty()
}

/// The unit of a decision. It compares every record that the decision has read, except locks, which the store checks when
/// the unit takes them.
fn unit(version: RecordVersion, reads: &ReadVersions, view: &TurnView<'_>, done: &DecidedUnit) -> Unit {
    let seen = |key: &RecordKey, assumed: Option<RecordVersion>| match view.get(key) {
        Some(stored) => stored.map(|stored| stored.version),
        None => view.unreadable_version(key).or(assumed),
    };
    let compared = reads.iter().filter(|(key, _)| key.kind() != RecordKind::Lock);
    let unit = Unit {
        version,
        compare: compared.map(|(key, assumed)| (key.clone(), seen(key, *assumed))).collect(),
        changes: done.changes.clone(),
        take: done.take.clone(),
        free: done.free.clone(),
    };
    debug_assert!(unit.change_positions().is_ok(), "every decision reads what it changes: {unit:?}");
    unit
}
