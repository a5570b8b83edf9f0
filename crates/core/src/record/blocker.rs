//! What a waiting run waits for. It is stored with the run: every node wakes the run when a record changes that blocks
//! it, and lists show the reason without evaluating conditions.

use std::fmt;

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use super::{LockName, PoolName, RecordKey, Run};
use crate::args::Args;
use crate::ids::{JobId, NodeId, RunId};
use crate::run::State;

/// One thing that a waiting run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// Its job is paused.
    JobPause,
    /// All jobs are paused.
    GlobalPause,
    /// No node that may start it is available.
    Node,
    /// Another run holds its lock.
    Lock(LockName),
    /// Other runs of its job are active, or before it in the queue.
    OtherRuns,
    /// Too many runs of its job are active.
    MaxRunning {
        /// The limit.
        count: u32,
        /// Whether only runs with the same args count.
        same_args: bool,
    },
    /// Too many runs in a pool are active.
    Pool {
        /// The name of the pool.
        pool: PoolName,
        /// The limit.
        count: u32,
        /// Whether only runs with the same args count.
        #[serde(default, skip_serializing_if = "is_false")]
        same_args: bool,
        /// A digest of the node labels that the job requires.
        #[serde(default)]
        labels: u64,
        /// Whether the run waits until the limit is reached.
        #[serde(default, skip_serializing_if = "is_false")]
        is_negated: bool,
    },
    /// A run of a job with certain args is not, or has not ended, in one of these states.
    After {
        /// The job.
        job: JobId,
        /// The args of its run.
        args: Args,
        /// The states that count.
        states: Vec<State>,
        /// Unfinished runs whose next state may count.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        runs: Vec<RunId>,
        /// How and when the last of these runs ended, if that does not count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<(State, Instant)>,
        /// Whether the run waits until there is no such run.
        #[serde(default, skip_serializing_if = "is_false")]
        is_negated: bool,
    },
    /// The job that a condition names does not exist.
    MissingJob(JobId),
    /// A check of something outside has not succeeded.
    Probe {
        /// What is checked, in words.
        check: String,
        /// The last answer: when it came, and what was found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<(Instant, String)>,
        /// Whether the run waits until it does not succeed.
        #[serde(default, skip_serializing_if = "is_false")]
        is_negated: bool,
    },
    /// A time has not come.
    Time(Instant),
}

/// Which of the runs that wait for the same record are woken when it changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum WakeGroup {
    /// All of them: any number may go on.
    All,
    /// The first run of each job, for each node if its runs have targets, and for each args if only runs with the same
    /// args count. If it starts, it takes what the others wait for as well. It may start on the same nodes as the others.
    First(JobId, Option<NodeId>, Option<u64>),
    /// The first run in a pool, of those that have the same limit and may start on the same nodes, and for each args if
    /// only runs with the same args count.
    FirstInPool {
        /// The limit.
        count: u32,
        /// The only node that may start the run.
        target: Option<NodeId>,
        /// A digest of the node labels that the job requires.
        labels: u64,
        /// A digest of the args of the run, if only runs with the same args count.
        args: Option<u64>,
    },
    /// The first run of each job, for each node if its runs have targets, of those that only the pause of the job holds
    /// back. A run that an operator has started does not wait behind them.
    FirstPaused(JobId, Option<NodeId>),
}

impl Blocker {
    /// The most blockers that are stored with a run. Beyond that, the run depends on the poll interval of its conditions.
    pub const MAX: usize = 256;

    /// The records whose change may let a waiting run start, and which of the runs that wait for them are woken then. All
    /// of them depend on their job; other runs depend on nothing.
    pub fn watched_by(run: &Run) -> Vec<(RecordKey, WakeGroup)> {
        if run.state != State::Waiting {
            return Vec::new();
        }
        let own_job = (RecordKey::Job(run.job.clone()), WakeGroup::All);
        [own_job].into_iter().chain(run.blockers.iter().flat_map(|blocker| blocker.watched(run))).collect()
    }

    fn watched(&self, run: &Run) -> Vec<(RecordKey, WakeGroup)> {
        let own_state = || RecordKey::JobState(run.job.clone());
        let first = |args| WakeGroup::First(run.job.clone(), run.target, args);
        match self {
            // The end of a pause of all jobs wakes all runs.
            Self::GlobalPause | Self::Node | Self::Time(_) | Self::Probe { .. } => Vec::new(),
            Self::JobPause => vec![(own_state(), WakeGroup::FirstPaused(run.job.clone(), run.target))],
            Self::OtherRuns | Self::MaxRunning { same_args: false, .. } => vec![(own_state(), first(None))],
            Self::MaxRunning { same_args: true, .. } => vec![(own_state(), first(Some(run.args.digest())))],
            Self::Pool { pool, count, same_args, labels, is_negated } => {
                let (count, labels) = (*count, *labels);
                let args = same_args.then(|| run.args.digest());
                let first = WakeGroup::FirstInPool { count, target: run.target, labels, args };
                vec![(RecordKey::Pool(pool.clone()), if *is_negated { WakeGroup::All } else { first })]
            }
            Self::Lock(lock) => vec![(RecordKey::Lock(lock.clone()), first(None))],
            Self::After { job, args, states, runs, .. } => {
                let is_for_peers = states.iter().any(|state| !state.is_finished());
                let identity = (!args.is_empty()).then(|| RecordKey::Identity(job.clone(), args.clone()));
                let mut keys: Vec<RecordKey> = identity.into_iter().chain([RecordKey::Job(job.clone())]).collect();
                // The outcomes of runs without args are in the state of their job.
                if is_for_peers || args.is_empty() {
                    keys.push(RecordKey::JobState(job.clone()));
                }
                if is_for_peers {
                    keys.extend(runs.iter().map(|run| RecordKey::Run(*run)));
                }
                keys.into_iter().map(|key| (key, WakeGroup::All)).collect()
            }
            Self::MissingJob(job) => vec![(RecordKey::Job(job.clone()), WakeGroup::All)],
        }
    }

    /// The blocker of a condition that must not hold.
    pub(crate) fn negated(self) -> Self {
        match self {
            Self::After { job, args, states, runs, last, is_negated } => {
                Self::After { job, args, states, runs, last, is_negated: !is_negated }
            }
            Self::Pool { pool, count, same_args, labels, is_negated } => {
                Self::Pool { pool, count, same_args, labels, is_negated: !is_negated }
            }
            Self::Probe { check, answer, is_negated } => Self::Probe { check, answer, is_negated: !is_negated },
            other => other,
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// After "waits for".
impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::JobPause => f.write_str("the end of the job's pause"),
            Self::GlobalPause => f.write_str("the end of the pause of all jobs"),
            Self::Node => f.write_str("a node that may run it"),
            Self::Lock(lock) => write!(f, "the lock `{lock}`"),
            Self::OtherRuns => f.write_str("other runs of the job"),
            Self::MaxRunning { count, same_args } => {
                let args = if *same_args { " with the same args" } else { "" };
                write!(f, "fewer than {count} active runs{args}")
            }
            Self::Pool { pool, count, same_args, is_negated, .. } => {
                let (amount, args) = (
                    if *is_negated { "at least" } else { "fewer than" },
                    if *same_args { " with the same args" } else { "" },
                );
                write!(f, "{amount} {count} active runs{args} in the pool `{pool}`")
            }
            Self::After { job, args, states, last, is_negated, .. } => {
                let article = if *is_negated { "no" } else { "a" };
                let states: Vec<&str> = states.iter().map(|state| state.name()).collect();
                write!(f, "{article} run of `{job}`")?;
                if !args.is_empty() {
                    write!(f, " with {args}")?;
                }
                write!(f, " in {}", states.join(" or "))?;
                match last.filter(|_| !is_negated) {
                    Some((ended, at)) => write!(f, " (the last one ended in {ended} at {})", to_second(at)),
                    None => Ok(()),
                }
            }
            Self::MissingJob(job) => write!(f, "the job `{job}`, which does not exist"),
            Self::Probe { check, answer, is_negated } => {
                write!(f, "{}{check}", if *is_negated { "the end of " } else { "" })?;
                match answer {
                    Some((at, found)) if found.is_empty() => write!(f, " (checked {})", to_second(*at)),
                    Some((at, found)) => write!(f, " ({found}, checked {})", to_second(*at)),
                    None => Ok(()),
                }
            }
            Self::Time(at) => write!(f, "{at}"),
        }
    }
}

/// The beginning of the second of an instant: a reader does not need more.
fn to_second(at: Instant) -> Instant {
    Instant::from_secs(at.secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{JobUid, RunNumber};

    fn job(name: &str) -> JobId {
        JobId::parse(name).expect("an id")
    }

    fn waiting_run(args: &Args) -> Run {
        let id = RunId::from_key(Instant::EPOCH, "1");
        let run = Run::blank(id, RunNumber(1), job("own"), JobUid::from_bits(1), Instant::EPOCH);
        Run { args: args.clone(), ..run }
    }

    /// Compares the words of a blocker and the records that wake the run, and stores the blocker.
    fn check(blocker: &Blocker, words: &str, watched: &str, run: &Run) {
        assert_eq!(blocker.to_string(), words);
        let group = |group| match group {
            WakeGroup::All => "",
            WakeGroup::First(_, _, None) => " first",
            WakeGroup::First(_, _, Some(_)) => " first with these args",
            WakeGroup::FirstInPool { args: None, .. } => " first in pool",
            WakeGroup::FirstInPool { args: Some(_), .. } => " first in pool with these args",
            WakeGroup::FirstPaused(..) => " first paused",
        };
        let run = Run { blockers: vec![blocker.clone()], ..run.clone() };
        let keys: Vec<String> =
            Blocker::watched_by(&run).into_iter().map(|(key, woken)| format!("{key}{}", group(woken))).collect();
        let watched = if watched.is_empty() { "job own".to_owned() } else { format!("job own, {watched}") };
        assert_eq!(keys.join(", "), watched, "{words}");
        assert_eq!(Blocker::watched_by(&Run { state: State::Starting, ..run }), []);
        let stored = serde_json::to_string(blocker).expect("JSON");
        assert_eq!(serde_json::from_str::<Blocker>(&stored).expect(&stored), *blocker);
    }

    #[test]
    fn pools_and_checks_of_the_outside_have_words() {
        let run = waiting_run(&Args::new());
        let pool = |count, same_args, is_negated| Blocker::Pool {
            pool: PoolName::parse("db").expect("a name"),
            count,
            same_args,
            labels: 7,
            is_negated,
        };
        let probe = |found: Option<&str>, is_negated| Blocker::Probe {
            check: "the file `/a`".to_owned(),
            answer: found.map(|found| (Instant::EPOCH, found.to_owned())),
            is_negated,
        };
        for (blocker, words, watched) in [
            (pool(3, false, false), "fewer than 3 active runs in the pool `db`", "pool db first in pool"),
            (
                pool(1, true, false),
                "fewer than 1 active runs with the same args in the pool `db`",
                "pool db first in pool with these args",
            ),
            (pool(2, false, true), "at least 2 active runs in the pool `db`", "pool db"),
            (probe(None, false), "the file `/a`", ""),
            (probe(Some("does not exist"), false), "the file `/a` (does not exist, checked 1970-01-01T00:00:00Z)", ""),
            (probe(Some(""), true), "the end of the file `/a` (checked 1970-01-01T00:00:00Z)", ""),
        ] {
            check(&blocker, words, watched, &run);
        }
    }

    /// What is shown, and what wakes the run. What is stored can be read back.
    #[test]
    fn blockers_have_words_and_records_that_wake_the_run() {
        let id = RunId::from_key(Instant::EPOCH, "1");
        let args: Args = [("date".to_owned(), "2026-01-05".to_owned())].into_iter().collect();
        let run = waiting_run(&args);
        let after = |states: &[State], is_negated| Blocker::After {
            job: job("other"),
            args: args.clone(),
            states: states.to_vec(),
            runs: vec![id],
            last: Some((State::Failure, Instant::EPOCH)).filter(|_| states.len() == 1),
            is_negated,
        };
        let finished = format!("identity other {args}, job other");
        let unfinished = format!("{finished}, state of other, run {id}");
        for (blocker, words, watched) in [
            (Blocker::JobPause, "the end of the job's pause", "state of own first paused"),
            (Blocker::GlobalPause, "the end of the pause of all jobs", ""),
            (Blocker::Node, "a node that may run it", ""),
            (Blocker::Lock(LockName::parse("l").expect("a name")), "the lock `l`", "lock l first"),
            (Blocker::OtherRuns, "other runs of the job", "state of own first"),
            (Blocker::MaxRunning { count: 3, same_args: false }, "fewer than 3 active runs", "state of own first"),
            (
                Blocker::MaxRunning { count: 1, same_args: true },
                "fewer than 1 active runs with the same args",
                "state of own first with these args",
            ),
            (
                after(&[State::Success], false),
                "a run of `other` with date=2026-01-05 in success (the last one ended in failure at 1970-01-01T00:00:00Z)",
                &finished,
            ),
            (
                after(&[State::Running, State::Success], true),
                "no run of `other` with date=2026-01-05 in running or success",
                &unfinished,
            ),
            (Blocker::MissingJob(job("other")), "the job `other`, which does not exist", "job other"),
            (Blocker::Time(Instant::EPOCH), "1970-01-01T00:00:00Z", ""),
        ] {
            check(&blocker, words, watched, &run);
        }
    }
}
