//! Checks whether a history is linearizable: whether each call can be assigned one moment between its start and its end
//! so that all replies are correct. This is the algorithm of Wing and Gong with memoization.
//!
//! Linearizability is local: a history of calls to several objects is linearizable if that of each object is. So
//! callers split histories by object, which keeps them short.

use std::collections::BTreeSet;

/// Longer histories are not checked.
pub const CALLS_MAX: usize = 2_048;
/// The check gives up after this many search states.
const WAYS_MAX: usize = 100_000;

/// The sequential specification of an object: which replies are correct in a state, and the state after them.
pub trait SequentialModel {
    type Call;
    type Answer;
    /// The state of the object.
    type State: Clone + Ord;

    /// The initial state.
    fn start(&self) -> Self::State;

    /// The state after a call with this reply; `None` if the reply is wrong.
    fn step(&self, state: &Self::State, call: &Self::Call, answer: &Self::Answer) -> Option<Self::State>;
}

/// A call and its reply, with the positions of its start and its end in the total order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEvent<C, A> {
    /// The position of its start.
    pub began: u64,
    /// The position of its end.
    pub ended: u64,
    pub call: C,
    pub answer: A,
}

/// The result of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinearVerdict {
    /// There is an order in which all replies are correct.
    Linear,
    /// There is no such order.
    Broken {
        /// The largest number of calls that can be ordered.
        ordered: usize,
    },
    /// The history is too long, or has too many search states.
    TooHard,
}

/// The calls that are ordered so far, and the state after them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SearchState<S> {
    ordered: usize,
    /// A bit for each call.
    done: Vec<u64>,
    state: S,
}

/// Searches for an order in which all replies are correct.
pub fn check<M: SequentialModel>(model: &M, mut history: Vec<HistoryEvent<M::Call, M::Answer>>) -> LinearVerdict {
    if history.len() > CALLS_MAX {
        return LinearVerdict::TooHard;
    }
    history.sort_by_key(|event| event.began);
    let start = SearchState { ordered: 0, done: vec![0; history.len().div_ceil(64)], state: model.start() };
    let mut seen = BTreeSet::from([start.clone()]);
    let mut open = vec![start];
    let mut most = 0;
    while let Some(way) = open.pop() {
        most = most.max(way.ordered);
        if way.ordered == history.len() {
            return LinearVerdict::Linear;
        }
        for index in way.next(&history) {
            let event = &history[index];
            if let Some(state) = model.step(&way.state, &event.call, &event.answer) {
                let next = way.with(index, state);
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        if seen.len() > WAYS_MAX {
            return LinearVerdict::TooHard;
        }
    }
    LinearVerdict::Broken { ordered: most }
}

impl<S> SearchState<S> {
    /// Calls that can come next: no other open one had ended before they began.
    fn next<C, A>(&self, history: &[HistoryEvent<C, A>]) -> Vec<usize> {
        let mut first_end = u64::MAX;
        let mut open = Vec::new();
        for (index, event) in history.iter().enumerate().filter(|(index, _)| !self.is_done(*index)) {
            // Events are ordered by start: none after this one can come next either.
            if event.began > first_end {
                break;
            }
            first_end = first_end.min(event.ended);
            open.push(index);
        }
        open.retain(|index| history[*index].began < first_end);
        open
    }

    fn is_done(&self, index: usize) -> bool {
        self.done[index / 64] >> (index % 64) & 1 == 1
    }

    fn with(&self, index: usize, state: S) -> Self {
        let mut done = self.done.clone();
        done[index / 64] |= 1 << (index % 64);
        Self { ordered: self.ordered + 1, done, state }
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::{CursorCall, CursorModel, CursorReply};
    use super::super::locking::{LockCall, LockCallReply, Locking};
    use super::super::samples::run_id;
    use super::*;
    use cronhold_core::record::RecordVersion;

    fn number(text: &str) -> u64 {
        text.parse().expect("a number")
    }

    /// Reads `1-4 what it is`.
    fn span(line: &str) -> (u64, u64, Vec<&str>) {
        let mut words = line.split_whitespace();
        let (began, ended) = words.next().and_then(|span| span.split_once('-')).expect("a span");
        (number(began), number(ended), words.collect())
    }

    /// Reads calls such as `1-4 claim 0>1 done`, `2-3 read 1` and `5-6 delete 1 late`, where 0 is no record.
    fn claims(text: &str) -> LinearVerdict {
        let version = |text: &str| Some(number(text)).filter(|unit| *unit > 0).map(|unit| RecordVersion::new(1, unit));
        let event = |line: &str| {
            let (began, ended, words) = span(line);
            let (call, answer) = match words.as_slice() {
                ["read", found] => (CursorCall::Read, CursorReply::Found(version(found))),
                [what, versions, result] => {
                    let (seen, new) = versions.split_once('>').unwrap_or((versions, "0"));
                    assert_eq!(*what == "delete", version(new).is_none(), "{line}");
                    let answer = if *result == "done" { CursorReply::Done } else { CursorReply::Late };
                    (CursorCall::Write { seen: version(seen), new: version(new) }, answer)
                }
                _ => panic!("{line}"),
            };
            HistoryEvent { began, ended, call, answer }
        };
        check(&CursorModel, text.split(", ").map(event).collect())
    }

    #[test]
    fn checker_judges_claim_histories() {
        let broken = |ordered| LinearVerdict::Broken { ordered };
        for (history, verdict) in [
            ("1-2 read 0", LinearVerdict::Linear),
            ("1-2 claim 0>1 done, 3-4 read 1, 5-6 claim 1>2 done, 7-8 read 2", LinearVerdict::Linear),
            // One of two at the same time wins, and it does not matter which.
            ("1-4 claim 0>1 done, 2-3 claim 0>2 late, 5-6 read 1", LinearVerdict::Linear),
            ("1-4 claim 0>1 late, 2-3 claim 0>2 done, 5-6 read 2", LinearVerdict::Linear),
            // A read that overlaps a claim sees it or not.
            ("1-4 claim 0>1 done, 2-3 read 0", LinearVerdict::Linear),
            ("1-4 claim 0>1 done, 2-3 read 1", LinearVerdict::Linear),
            ("1-9 claim 0>1 done, 2-3 read 0, 4-5 read 1", LinearVerdict::Linear),
            // The long call comes between others that do not overlap each other.
            ("1-20 claim 2>3 done, 2-3 claim 0>1 done, 4-5 claim 1>2 done, 6-7 claim 3>4 done", LinearVerdict::Linear),
            ("1-2 claim 0>1 done, 3-4 delete 1 done, 5-6 claim 0>2 done, 7-8 claim 1>3 late", LinearVerdict::Linear),
            // Two winners.
            ("1-4 claim 0>1 done, 2-3 claim 0>2 done", broken(1)),
            ("1-2 claim 0>1 done, 3-4 claim 0>2 done", broken(1)),
            // No winner.
            ("1-4 claim 0>1 late, 2-3 claim 0>2 late", broken(0)),
            // A stale read.
            ("1-2 claim 0>1 done, 3-4 read 0", broken(1)),
            ("1-9 claim 0>1 done, 2-3 read 1, 4-5 read 0", broken(2)),
            // A read of a value that was never written, or only later.
            ("1-2 read 7", broken(0)),
            ("1-2 read 1, 3-4 claim 0>1 done", broken(0)),
            // A lost update, and a write that reappears.
            ("1-2 claim 0>1 done, 3-4 claim 1>2 done, 5-6 read 1", broken(2)),
            ("1-2 claim 0>1 done, 3-4 delete 1 done, 5-6 read 1", broken(2)),
            ("1-2 claim 0>1 done, 3-4 claim 1>2 late", broken(1)),
        ] {
            assert_eq!(claims(history), verdict, "{history}");
        }
    }

    /// Reads calls such as `1-4 take 1 fence 7`, `2-3 take 2 held 1`, `5-6 free 1`, `7-8 look free` and
    /// `7-8 look 1 fence 7`, where runs are numbers.
    fn locks(text: &str) -> LinearVerdict {
        let run = |text: &str| run_id(0, text.parse().expect("a run"));
        let event = |line: &str| {
            let (began, ended, words) = span(line);
            let (call, answer) = match words.as_slice() {
                ["take", by, "fence", fence] => (LockCall::Take(run(by)), LockCallReply::Taken(number(fence))),
                ["take", by, "held", holder] => (LockCall::Take(run(by)), LockCallReply::Held(run(holder))),
                ["free", by] => (LockCall::Free(run(by)), LockCallReply::Freed),
                ["look", "free"] => (LockCall::Read, LockCallReply::Seen(None)),
                ["look", holder, "fence", fence] => {
                    (LockCall::Read, LockCallReply::Seen(Some((run(holder), number(fence)))))
                }
                _ => panic!("{line}"),
            };
            HistoryEvent { began, ended, call, answer }
        };
        check(&Locking, text.split(", ").map(event).collect())
    }

    #[test]
    fn checker_judges_lock_histories() {
        let broken = |ordered| LinearVerdict::Broken { ordered };
        for (history, verdict) in [
            (
                "1-2 look free, 3-4 take 1 fence 5, 5-6 look 1 fence 5, 7-8 free 1, 9-10 look free",
                LinearVerdict::Linear,
            ),
            ("1-4 take 1 fence 5, 2-3 take 2 held 1", LinearVerdict::Linear),
            ("1-2 take 1 fence 5, 3-6 free 1, 4-5 take 2 fence 6", LinearVerdict::Linear),
            ("1-2 take 1 fence 5, 3-6 free 1, 4-5 take 2 held 1", LinearVerdict::Linear),
            ("1-2 take 1 fence 5, 3-4 free 2, 5-6 take 1 fence 5, 7-8 take 2 held 1", LinearVerdict::Linear),
            // Held by two.
            ("1-2 take 1 fence 5, 3-4 take 2 fence 6", broken(1)),
            ("1-4 take 1 fence 5, 2-3 take 2 fence 6", broken(1)),
            // Held by a run that does not hold it.
            ("1-2 take 1 held 2", broken(0)),
            ("1-2 take 1 fence 5, 3-4 take 2 held 3", broken(1)),
            ("1-2 take 1 fence 5, 3-4 free 1, 5-6 take 2 held 1", broken(2)),
            ("1-2 take 1 fence 5, 3-4 take 1 held 1", broken(1)),
            // Released by another run.
            ("1-2 take 1 fence 5, 3-4 free 2, 5-6 look free", broken(2)),
            // Fences that do not grow, or change without a holder.
            ("1-2 take 1 fence 5, 3-4 free 1, 5-6 take 2 fence 5", broken(2)),
            ("1-2 take 1 fence 5, 3-4 free 1, 5-6 take 1 fence 4", broken(2)),
            ("1-2 take 1 fence 5, 3-4 take 1 fence 4", broken(1)),
            ("1-2 take 1 fence 5, 3-4 look 1 fence 6", broken(1)),
        ] {
            assert_eq!(locks(history), verdict, "{history}");
        }
    }

    #[test]
    fn checker_gives_up_on_large_histories() {
        let event = |number: u64| {
            let call = CursorCall::Write { seen: None, new: Some(RecordVersion::new(1, number + 1)) };
            HistoryEvent { began: number, ended: 1_000_000 + number, call, answer: CursorReply::Late }
        };
        let long = (0..=CALLS_MAX as u64).map(event).collect();
        assert_eq!(check(&CursorModel, long), LinearVerdict::TooHard);
        // Any subset of these reads can come first, and the last call never fits.
        let read = |number: u64| HistoryEvent {
            began: number,
            ended: 1_000 + number,
            call: CursorCall::Read,
            answer: FOUND_NONE,
        };
        let mut wide: Vec<_> = (0..40).map(read).collect();
        wide.push(HistoryEvent {
            began: 40,
            ended: 2_000,
            call: CursorCall::Read,
            answer: CursorReply::Found(Some(RecordVersion::new(1, 1))),
        });
        assert_eq!(check(&CursorModel, wide), LinearVerdict::TooHard);
    }

    const FOUND_NONE: CursorReply = CursorReply::Found(None);
}
