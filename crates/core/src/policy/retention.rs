//! Which finished runs are pruned. Each final state has its own limit, so that a job that fails all night does not push
//! out its successes.

use cronhold_schedule::Instant;

use crate::ids::RunId;
use crate::job::Retain;
use crate::record::Run;
use crate::run::State;

/// The most runs that are pruned in one commit; the rest follows next time.
pub const TRIM_MAX: usize = 1_000;

/// The properties of a run that the retention policy depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionCandidate {
    /// The id of the run.
    pub id: RunId,
    /// The state of the run.
    pub state: State,
    /// Whether an action of the run is still to be done.
    pub has_undone_actions: bool,
    /// Whether a retry of it waits for its time.
    pub has_pending_retry: bool,
}

/// The runs of one job that can be pruned, oldest first, out of its runs from newest to oldest. A run that must stay
/// counts as kept.
///
/// Invariant: a run that is not finished, has undone actions or a pending retry is never among them.
pub fn to_trim(retain: &Retain, newest_first: &[RetentionCandidate]) -> Vec<RunId> {
    let mut kept = [0u32; 4];
    let mut trimmed = Vec::new();
    for candidate in newest_first {
        let (share, limit) = match candidate.state {
            State::Success => (0, retain.success),
            State::Failure => (1, retain.failure),
            State::Error => (2, retain.error),
            State::Skipped => (3, retain.skipped),
            _ => continue,
        };
        if kept[share] < limit || candidate.has_undone_actions || candidate.has_pending_retry {
            kept[share] = kept[share].saturating_add(1);
        } else {
            trimmed.push(candidate.id);
        }
    }
    trimmed.reverse();
    trimmed.truncate(TRIM_MAX);
    trimmed
}

/// Whether an output can be deleted. An output without a run always can. The record of the run keeps the last lines.
pub fn is_output_over(retain: &Retain, run: Option<&Run>, now: Instant) -> bool {
    match run {
        Some(run) => run.finished().is_some_and(|finished| finished.plus(retain.output) <= now),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::Span;

    use super::*;
    use crate::ids::{JobId, JobUid, RunNumber};
    use crate::record::{Actor, Transition};

    /// Runs as letters from newest to oldest: `+` success, `-` failure, `!` error, `/` skipped, `.` unfinished; after
    /// one of them, `a` is an undone action and `r` a pending retry.
    fn trimmed(runs: &str) -> Vec<usize> {
        let mut candidates: Vec<RetentionCandidate> = Vec::new();
        for letter in runs.chars() {
            let state = match letter {
                '+' => State::Success,
                '-' => State::Failure,
                '!' => State::Error,
                '/' => State::Skipped,
                '.' => State::Running,
                flag => {
                    let last = candidates.last_mut().expect("a run before its flag");
                    last.has_undone_actions |= flag == 'a';
                    last.has_pending_retry |= flag == 'r';
                    continue;
                }
            };
            let id = id(candidates.len());
            candidates.push(RetentionCandidate { id, state, has_undone_actions: false, has_pending_retry: false });
        }
        let retain = Retain { success: 2, failure: 1, error: 0, skipped: 1, output: Span::ZERO };
        let position = |id: RunId| candidates.iter().position(|one| one.id == id).expect("one of them");
        to_trim(&retain, &candidates).into_iter().map(position).collect()
    }

    fn id(index: usize) -> RunId {
        RunId::from_key(Instant::EPOCH, &index.to_string())
    }

    #[test]
    fn runs_beyond_the_limits_are_pruned_oldest_first() {
        for (runs, expected) in [
            ("", &[][..]),
            ("++", &[]),
            ("+++", &[2]),
            ("++++", &[3, 2]),
            ("+-+-+-", &[5, 4, 3]),
            ("!", &[0]),
            ("!a!r", &[]),
            ("....", &[]),
            (".+.+.+", &[5]),
            ("++a+a+", &[3]),
            ("+++a++r", &[3]),
            ("///", &[2, 1]),
        ] {
            assert_eq!(trimmed(runs), expected, "{runs}");
        }
    }

    #[test]
    fn output_of_a_finished_run_expires() {
        let retain = Retain { output: Span::from_secs(60), ..Retain::default() };
        let job = JobId::parse("j").expect("an id");
        let mut run = Run::blank(id(1), RunNumber(1), job, JobUid::from_bits(1), Instant::EPOCH);
        for (state, since) in [(State::Running, 0), (State::Stopping, 5), (State::Failure, 10)] {
            let at = Instant::from_secs(since);
            run.log.push(Transition::entered(at, state, Actor::Program));
            run.state = state;
            let over = |secs| is_output_over(&retain, Some(&run), Instant::from_secs(secs));
            let is_finished = state == State::Failure;
            assert_eq!(
                [over(10), over(69), over(70), over(1_000)],
                [false, false, is_finished, is_finished],
                "{state}"
            );
        }
        assert!(is_output_over(&retain, None, Instant::EPOCH));
    }

    #[test]
    fn one_commit_prunes_a_bounded_number_of_the_oldest_runs() {
        let runs = "+".repeat(TRIM_MAX + 12);
        let found = trimmed(&runs);
        assert_eq!((found.len(), found[0]), (TRIM_MAX, TRIM_MAX + 11));
    }
}
