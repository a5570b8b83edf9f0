//! Programs that are processes. The keeper has them; this is what the daemon knows of each: whether it was asked for,
//! runs, has ended, and what the node was told of it. It is told what happens and never waits, so that every order of
//! events can be tested.
//!
//! A program is started at most once: a launch that was sent is sent again only when a list of the keeper, which holds
//! all that it ever began and was not told to forget, does not have it.
//!
//! The keeper may also have programs of runs that are over: others may have declared them lost while this node was away.
//! The node is told of these as of any other, and sees what is to be done about them.

mod carry;
mod list;
mod news;
mod tasks;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::command::Report;
use cronhold_core::record::Run;
use cronhold_core::signal::Signal;
use cronhold_keeper::{End, Program, RunKey, Stage, ToKeeper};
use cronhold_schedule::Span;

/// A program that was not started so long after its run was written as starting is not started at all.
const LAUNCH_WITHIN: Span = Span::from_secs(10);
/// Runs in one message that lets the keeper forget them.
const FORGET_MAX: usize = 1_000;
/// What waits to be said from which on signals are dropped. Launches and stops are as many as there are runs.
const WANTS_MAX: usize = 100_000;
/// A program whose run is over is forgotten so long after the node was told of its end, whatever came of that.
const PART_AFTER: Span = Span::from_secs(60);
/// What is said of a keeper that nobody has heard of yet.
const SILENT: &str = "has not answered yet";

/// All processes of a node.
///
/// Invariant: `deadlines` holds exactly the programs that wait to be asked for.
#[derive(Debug)]
pub struct Processes {
    known: BTreeMap<RunId, Known>,
    line: Line,
    succession: Succession,
    /// Programs of the keeper that no run has asked for in this life; only until the node is ready.
    strays: BTreeMap<RunId, Stage>,
    /// Whether the node has asked for all that its earlier lives have left.
    is_ready: bool,
    /// Whether it was said what was left.
    has_said: bool,
    /// What is to be said to the keeper, one entry for each task.
    wants: VecDeque<Want>,
    /// Runs whose leases are to be said to the keeper; each has only the latest.
    leases: BTreeSet<RunId>,
    forget: Vec<RunKey>,
    deadlines: BTreeSet<(Span, RunId)>,
    /// Programs whose runs are over and which are forgotten by then.
    partings: BTreeSet<(Span, RunId)>,
    reports: VecDeque<(RunId, Report)>,
    finishing: VecDeque<Finish>,
    words: Vec<(bool, String)>,
}

/// How the keeper is reached.
#[derive(Debug)]
enum Line {
    /// It is not, and why; the words go on after `the keeper`.
    Down(String),
    /// It tells all it knows.
    Listing(Vec<Program>),
    /// It has.
    Up,
    /// It was asked to make room for a keeper of this version, and does so at once.
    Leaving,
}

/// Whether the keeper is of another version than the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Succession {
    /// It is not, or nothing is to be done about it.
    None,
    /// It is, and makes room as soon as no program runs.
    Due,
    /// One has made room in this life. Whoever came then is of the version that there is.
    Done,
}

/// A process that a run has asked for, or that the keeper has of a run that is over.
#[derive(Debug)]
struct Known {
    /// None when it was not asked for in this life.
    run: Option<Arc<Run>>,
    /// Whether it was first asked for in this life, so that no earlier one has stored anything of it.
    is_new: bool,
    fence: Option<u64>,
    launch_by: Span,
    /// The uptime by which it must be dead, as the node has said last.
    kill_at: Option<Span>,
    at: At,
    /// How it was told to end, and the time until it is made to.
    stop: Option<(Signal, Span)>,
    /// Whether the run is over for the store, so that nobody waits for a report.
    is_settled: bool,
    /// The last there was to tell, for a node that asks again.
    told: Option<Report>,
}

/// Where a process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// The keeper is to be asked for it.
    Waiting,
    /// The keeper was asked.
    Asked,
    /// The line broke before the keeper answered: the next list tells.
    Unsure,
    /// An earlier life has asked for it: the list tells.
    Sought,
    /// It runs.
    Running,
    /// It has ended, and its output is being stored.
    Ended(End),
    /// It was lost with its keeper, and what it wrote until then is being stored.
    Lost,
    /// The node was told the last there is to tell.
    Told,
}

#[derive(Debug)]
enum Want {
    Launch(RunId),
    Stop(RunId),
    Signal(RunId, Signal),
}

/// What is to be said to the keeper next.
#[derive(Debug, Clone, PartialEq)]
pub enum Due {
    /// To start a run's program. Who carries it makes the message, because secrets are read for it.
    Launch {
        /// The run.
        run: Arc<Run>,
        /// The fence of its lock.
        fence: Option<u64>,
        /// The uptime after which it must not be started.
        launch_by: Span,
        /// The uptime by which it must be dead.
        kill_at: Option<Span>,
    },
    /// A message as it is.
    Say(ToKeeper),
}

/// A program that has ended or was lost, and whose output has to be stored to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finish {
    /// Of which run.
    pub run: RunId,
    /// How long its output is; nobody knows that of one that was lost with its keeper, and then it is all that is there.
    pub output: Option<u64>,
}

impl Default for Processes {
    fn default() -> Self {
        Self {
            known: BTreeMap::new(),
            line: Line::Down(SILENT.to_owned()),
            succession: Succession::None,
            strays: BTreeMap::new(),
            is_ready: false,
            has_said: false,
            wants: VecDeque::new(),
            leases: BTreeSet::new(),
            forget: Vec::new(),
            deadlines: BTreeSet::new(),
            partings: BTreeSet::new(),
            reports: VecDeque::new(),
            finishing: VecDeque::new(),
            words: Vec::new(),
        }
    }
}

/// Changes that several events make.
impl Processes {
    fn await_launch(&mut self, run: RunId, launch_by: Span) {
        self.deadlines.insert((launch_by, run));
        self.wants.push_back(Want::Launch(run));
    }

    /// The last report of a run.
    fn tell(&mut self, run: RunId, report: Report) {
        let Some(known) = self.known.get_mut(&run) else { return };
        known.at = At::Told;
        known.told = Some(report.clone());
        self.report(run, report);
    }

    fn let_go(&mut self, run: RunId) {
        self.known.remove(&run);
        self.forget.push(RunKey(run.bits()));
    }

    fn report(&mut self, run: RunId, report: Report) {
        self.reports.push_back((run, report));
    }
}

impl Known {
    fn new(at: At) -> Self {
        Self {
            run: None,
            is_new: at == At::Waiting,
            fence: None,
            launch_by: Span::ZERO,
            kill_at: None,
            at,
            stop: None,
            is_settled: false,
            told: None,
        }
    }
}

/// A run of ours; whatever else the keeper has is none of our business.
fn run_id(key: RunKey) -> Option<RunId> {
    RunId::parse(&key.to_string()).ok()
}
