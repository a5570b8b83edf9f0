//! The jobs during a crash: one that is due every second, two that share a lock, and one that runs on request. Their
//! programs write a trace of each start and each end, which is compared with the stored runs.

use std::fs;
use std::path::Path;

use cronhold_core::record::Run;

/// The lock of the two jobs that must not run at once.
pub(crate) const LOCK: &str = "one-at-a-time";
/// The exit code of the program that runs on request.
pub(crate) const ASKED_EXIT: i32 = 3;
/// The files in which programs record starts, ends, and overlaps with another program under the same lock.
const STARTS: &str = "starts";
const ENDS: &str = "ends";
const OVERLAPS: &str = "overlaps";

/// The jobs that run during a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workload {
    /// A short program every second.
    Ticks,
    /// Two jobs with slow programs that share a lock.
    Locked,
    /// A program that runs on request.
    Asked,
    /// All of them.
    Mixed,
}

impl Workload {
    pub(crate) const ALL: [Self; 4] = [Self::Ticks, Self::Locked, Self::Asked, Self::Mixed];

    /// The number of kills under this workload.
    pub(crate) fn deaths(self) -> usize {
        if self == Self::Mixed { 3 } else { 1 }
    }

    /// Whether it has runs on request.
    pub(crate) fn is_asked(self) -> bool {
        matches!(self, Self::Asked | Self::Mixed)
    }

    /// Whether several of its runs can be unfinished at once.
    pub(crate) fn has_several_jobs(self) -> bool {
        matches!(self, Self::Locked | Self::Mixed)
    }

    /// Jobs that have a schedule.
    pub(crate) fn scheduled(self) -> &'static [&'static str] {
        match self {
            Self::Ticks => &["tick"],
            Self::Locked => &["left", "right"],
            Self::Asked => &[],
            Self::Mixed => &["tick", "left", "right"],
        }
    }

    /// The job files. A program with limits is started through the launch stage.
    pub(crate) fn jobs(self, dir: &Path, has_limits: bool) -> Vec<(&'static str, String)> {
        let mut jobs = Vec::new();
        let mut put = |id: &'static str, body: &str, keys: &str| {
            let limits = if has_limits { "limits: {files: 64}\n" } else { "" };
            let (starts, ends) = (dir.join(STARTS), dir.join(ENDS));
            let begin = format!("echo $CRONHOLD_RUN_ID >> {}; echo \"{id} $CRONHOLD_RUN_ID\"", starts.display());
            let end = format!("echo $CRONHOLD_RUN_ID >> {}", ends.display());
            let exit = if id == "asked" { ASKED_EXIT } else { 0 };
            let program = format!("program: '{begin}; {body} {end}; exit {exit}'\nshell: /bin/sh\n");
            jobs.push((id, format!("{program}{limits}{keys}")));
        };
        for id in self.scheduled() {
            match *id {
                "tick" => put(id, "", "overlap: allow\ncatch_up: all\nschedule: {every: 1s}\n"),
                id => {
                    // The kernel releases the file lock with the last process that holds it.
                    let (held, overlaps) = (dir.join("held"), dir.join(OVERLAPS));
                    let take = format!(
                        "exec 9>>{}; flock -n 9 || echo $CRONHOLD_RUN_ID >> {}; sleep 0.3;",
                        held.display(),
                        overlaps.display()
                    );
                    put(id, &take, &format!("lock: {LOCK}\noverlap: queue\nschedule: {{every: 2s}}\n"));
                }
            }
        }
        if self.is_asked() {
            put("asked", "", "overlap: allow\n");
        }
        jobs
    }
}

/// The traces that programs have written.
#[derive(Debug)]
pub(crate) struct Traces {
    starts: Vec<String>,
    ends: Vec<String>,
    /// Runs that found another program under their lock.
    pub(crate) overlaps: Vec<String>,
}

impl Traces {
    pub(crate) fn read(dir: &Path) -> Self {
        let lines = |file: &str| {
            let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
            text.lines().map(str::to_owned).collect()
        };
        Self { starts: lines(STARTS), ends: lines(ENDS), overlaps: lines(OVERLAPS) }
    }

    /// The number of starts and of ends of a run's program.
    pub(crate) fn of(&self, run: &Run) -> (usize, usize) {
        let id = run.id.to_string();
        let count = |lines: &[String]| lines.iter().filter(|line| **line == id).count();
        (count(&self.starts), count(&self.ends))
    }

    /// The number of started programs.
    pub(crate) fn starts(&self) -> usize {
        self.starts.len()
    }
}

/// The expected output of a run's program.
pub(crate) fn output(run: &Run) -> String {
    format!("{} {}\n", run.job, run.id)
}
