//! Lets one actor run at a time. Each actor is a thread; at every point where it could be interrupted, the seed decides
//! who goes on. So a seed always yields the same history.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use cronhold_schedule::{Instant, Span};
use cronhold_store::lock_mutex;

/// Events of the trace that a finding shows.
const TRACE_MAX: usize = 60;

/// Numbers from a seed.
#[derive(Debug)]
pub(crate) struct SeedNumbers(u64);

impl SeedNumbers {
    fn new(seed: u64) -> Self {
        let mut numbers = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for _ in 0..8 {
            numbers.next();
        }
        numbers
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

/// What all actors share.
#[derive(Debug)]
pub(crate) struct ActorStage {
    state: Mutex<StageState>,
    /// One for each actor, and the last one for the play itself.
    turns: Vec<Condvar>,
    micros: AtomicI64,
}

#[derive(Debug)]
struct StageState {
    numbers: SeedNumbers,
    /// Actors that have not ended.
    alive: BTreeSet<usize>,
    turn: Option<usize>,
    /// Points at which actors can still be interrupted before the faults end.
    left: usize,
    finding: Option<String>,
    trace: VecDeque<String>,
}

impl ActorStage {
    pub(crate) fn new(seed: u64, actors: usize, length: usize) -> Self {
        let state = StageState {
            numbers: SeedNumbers::new(seed),
            alive: (0..actors).collect(),
            turn: Some(0),
            left: length,
            finding: None,
            trace: VecDeque::new(),
        };
        let turns = (0..=actors).map(|_| Condvar::new()).collect();
        Self { state: Mutex::new(state), turns, micros: AtomicI64::new(Instant::from_secs(1_800_000_000).micros()) }
    }

    /// A number below `limit`. Only the actor whose turn it is may call this.
    pub(crate) fn below(&self, limit: usize) -> usize {
        let number = lock_mutex(&self.state).numbers.next();
        usize::try_from(number % limit.max(1) as u64).unwrap_or(0)
    }

    /// True once in `many` times.
    pub(crate) fn once_in(&self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn random_bits(&self) -> [u8; 16] {
        let mut state = lock_mutex(&self.state);
        let bits = (0..4).fold(0, |bits: u128, _| bits << 31 | u128::from(state.numbers.next()));
        bits.to_be_bytes()
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_micros(self.micros.load(Ordering::SeqCst))
    }

    pub(crate) fn pass(&self, span: Span) {
        self.micros.fetch_add(i64::try_from(span.micros()).unwrap_or(0), Ordering::SeqCst);
    }

    /// Waits for the first turn of an actor, which takes part until the result is dropped.
    pub(crate) fn enter(&self, actor: usize) -> ActorPart<'_> {
        let state = lock_mutex(&self.state);
        self.wait_for_turn(state, actor);
        ActorPart { stage: self, actor }
    }

    /// A point at which other actors may go on.
    pub(crate) fn interrupt(&self, actor: usize) {
        self.pass(Span::from_millis(1));
        let mut state = lock_mutex(&self.state);
        state.left = state.left.saturating_sub(1);
        self.choose_next(&mut state);
        self.wait_for_turn(state, actor);
    }

    /// Ends an actor.
    fn leave(&self, actor: usize) {
        let mut state = lock_mutex(&self.state);
        state.alive.remove(&actor);
        self.choose_next(&mut state);
    }

    /// Waits until all actors have ended.
    pub(crate) fn wait_for_end(&self) {
        let state = lock_mutex(&self.state);
        let last = self.turns.last().expect("there is one for the play");
        drop(last.wait_while(state, |state| !state.alive.is_empty()).expect("no actor panics with the lock"));
    }

    fn choose_next(&self, state: &mut StageState) {
        let number = state.numbers.next();
        let chosen = usize::try_from(number % state.alive.len().max(1) as u64).unwrap_or(0);
        state.turn = state.alive.iter().nth(chosen).copied();
        let turn = state.turn.unwrap_or(self.turns.len() - 1);
        self.turns[turn].notify_all();
    }

    fn wait_for_turn(&self, state: MutexGuard<'_, StageState>, actor: usize) {
        let is_waiting = |state: &mut StageState| state.turn != Some(actor);
        drop(self.turns[actor].wait_while(state, is_waiting).expect("no actor panics with the lock"));
    }

    /// Whether actors come to an end: the time of faults is over, or a promise is broken.
    pub(crate) fn is_over(&self) -> bool {
        let state = lock_mutex(&self.state);
        state.left == 0 || state.finding.is_some()
    }

    pub(crate) fn trace(&self, event: impl FnOnce() -> String) {
        let mut state = lock_mutex(&self.state);
        if state.trace.len() >= TRACE_MAX {
            state.trace.pop_front();
        }
        let event = event();
        state.trace.push_back(event);
    }

    /// Reports a broken promise. The first one counts.
    pub(crate) fn report(&self, finding: String) {
        lock_mutex(&self.state).finding.get_or_insert(finding);
    }

    /// What was reported, with the last events.
    pub(crate) fn finding(&self) -> Option<String> {
        let state = lock_mutex(&self.state);
        let trace: Vec<&str> = state.trace.iter().map(String::as_str).collect();
        state.finding.as_ref().map(|finding| format!("{finding}\n{}", trace.join("\n")))
    }
}

/// Ends the part of an actor when it is dropped, also by a panic, so that the others do not wait for it.
#[derive(Debug)]
pub(crate) struct ActorPart<'s> {
    stage: &'s ActorStage,
    actor: usize,
}

impl Drop for ActorPart<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stage.report(format!("actor {} panicked", self.actor));
        }
        self.stage.leave(self.actor);
    }
}
