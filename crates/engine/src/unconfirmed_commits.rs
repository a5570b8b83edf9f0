//! When commits were sent whose outcome is unknown. If such a commit turns out to have taken effect, the launches that it
//! owes are as old as the commit. The times in the records do not tell how old it is, because the clock may have been set
//! since.

use std::collections::VecDeque;

use cronhold_schedule::{Instant, Span};

/// Commits that are remembered. A node sends few commits while the store does not reply.
const COMMITS_MAX: usize = 1_024;

/// Commits without a reply, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct UnconfirmedCommits {
    commits: VecDeque<UnconfirmedCommit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UnconfirmedCommit {
    /// The time as of which its commands were decided. Their records have it.
    decided: Instant,
    /// The uptime before which it was not sent.
    sent: Span,
}

impl UnconfirmedCommits {
    /// The outcome of a command is unknown that was decided as of a time and not sent before an uptime.
    pub(crate) fn record(&mut self, decided: Instant, sent: Span) {
        let commit = UnconfirmedCommit { decided, sent };
        if self.commits.back() == Some(&commit) {
            return;
        }
        if self.commits.len() == COMMITS_MAX {
            self.commits.pop_front();
        }
        self.commits.push_back(commit);
    }

    /// The uptime before which a commit was not sent; the earliest if several were decided as of the same time.
    pub(crate) fn sent(&self, decided: Instant) -> Option<Span> {
        self.commits.iter().find(|commit| commit.decided == decided).map(|commit| commit.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_found_by_their_time_and_are_bounded() {
        let mut commits = UnconfirmedCommits::default();
        let time = |secs: usize| Instant::from_secs(i64::try_from(secs).expect("a small number"));
        let uptime = |secs: usize| Span::from_secs(secs as u64);
        commits.record(time(50), uptime(1));
        commits.record(time(50), uptime(1));
        commits.record(time(50), uptime(90));
        assert_eq!(commits.commits.len(), 2, "the commands of one batch count once");
        assert_eq!(commits.sent(time(50)), Some(uptime(1)), "the clock was set back in between");
        assert_eq!(commits.sent(time(51)), None);
        for number in 0..COMMITS_MAX {
            commits.record(time(100 + number), uptime(100 + number));
        }
        assert_eq!((commits.commits.len(), commits.sent(time(50))), (COMMITS_MAX, None));
    }
}
