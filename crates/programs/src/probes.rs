//! Checks of waiting runs: files are looked at, and requests sent, on threads of their own, because a network file system or
//! a server may hang. Commands run under the keeper like programs of runs, with an id that only they have, and are killed when their time is over.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use cronhold_core::command::{ExitOutcome, ProbeResult, ProgramReport};
use cronhold_core::decide::LAUNCH_WITHIN;
use cronhold_core::record::{ExecutionPolicy, ResolvedProbe, ResolvedProcess, ResolvedProgram, ResolvedRequest, Run};
use cronhold_core::run::Reason;
use cronhold_core::{JobUid, RunId, RunNumber, State};
use cronhold_engine::{LaunchRequest, MachineClock, ProbeRequest};
use cronhold_keeper::OutputLimits;
use cronhold_schedule::Span;

use crate::command_actions::naming_the_run;
use crate::host_env::HostEnv;
use crate::http::{CancelToken, HttpClient, HttpRequest};
use crate::plugin::CONDITION_KEPT;
use crate::service::{KEPT_MAX, refusal};
use crate::worker_pool::{PoolLimits, WorkerPool};

/// Threads that look at files, and how many of them may look into the same directory at the top of the file system; and
/// as many that send requests, with the same limit for one server. One that hangs does not hold up the others.
const LIMITS: PoolLimits = PoolLimits { threads: 32, per_group: 24 };
/// Time between the signal to a command that takes too long and SIGKILL.
const GRACE: Span = Span::from_secs(5);
/// How much of a command's output is kept. Only its last line is used.
const OUTPUT_KEPT: OutputLimits = OutputLimits { head: 4 * 1024, tail: 16 * 1024 };

/// How much of the output of the command of a check is kept.
pub(crate) fn output_kept(run: &Run) -> OutputLimits {
    match &run.work {
        Some(ResolvedProgram::Process(process)) if process.plugin.is_some() => CONDITION_KEPT,
        _ => OUTPUT_KEPT,
    }
}

/// The answer to an attempt.
#[derive(Debug)]
pub(crate) struct ProbeReport {
    pub(crate) run: RunId,
    pub(crate) attempt: u32,
    pub(crate) result: ProbeResult,
}

/// Receives answers.
pub(crate) type ProbeReportFn = Arc<dyn Fn(ProbeReport) + Send + Sync>;

/// Looks at files and sends requests. Clones share the threads.
#[derive(Debug, Clone)]
pub(crate) struct ThreadProbes {
    files: WorkerPool<QueuedProbe<String>>,
    requests: WorkerPool<QueuedProbe<ResolvedRequest>>,
    clock: Arc<dyn MachineClock>,
}

struct QueuedProbe<T> {
    run: RunId,
    attempt: u32,
    subject: T,
    /// The uptime after which another node may make the attempt.
    begin_by: Span,
}

impl ThreadProbes {
    pub(crate) fn new(
        clock: Arc<dyn MachineClock>,
        http: Arc<HttpClient>,
        host_env: HostEnv,
        report: ProbeReportFn,
    ) -> Self {
        let ask = move |request: &ResolvedRequest| send(&http, request, &host_env);
        let files = pool("file checks", Arc::clone(&clock), Arc::clone(&report), |path: &String| look_at(path));
        Self { files, requests: pool("request checks", Arc::clone(&clock), report, ask), clock }
    }

    /// Queues the check of a file or of a response. Commands are not carried out here.
    pub(crate) fn submit(&self, run: RunId, attempt: u32, probe: &ResolvedProbe) {
        let begin_by = self.clock.uptime().plus(probe.timeout());
        match probe {
            ResolvedProbe::File(path) => {
                let group = top_directory(path);
                self.files.submit(group, QueuedProbe { run, attempt, subject: path.clone(), begin_by });
            }
            ResolvedProbe::Http(request) => {
                let group = request.origin().to_owned();
                self.requests.submit(group, QueuedProbe { run, attempt, subject: (**request).clone(), begin_by });
            }
            ResolvedProbe::Command(_) => {}
        }
    }
}

/// Threads for one kind of check. `check` may block.
fn pool<T: Send + 'static>(
    name: &'static str,
    clock: Arc<dyn MachineClock>,
    report: ProbeReportFn,
    check: impl Fn(&T) -> ProbeResult + Send + Sync + 'static,
) -> WorkerPool<QueuedProbe<T>> {
    let work = move |QueuedProbe { run, attempt, subject, begin_by }: QueuedProbe<T>| {
        let result = match clock.uptime() > begin_by {
            true => refused("this node was busy with other checks"),
            false => check(&subject),
        };
        report(ProbeReport { run, attempt, result });
    };
    WorkerPool::new(name, LIMITS, Box::new(work))
}

/// Whether a request gets an expected response. Only the beginning of the body counts.
fn send(http: &HttpClient, request: &ResolvedRequest, host_env: &HostEnv) -> ProbeResult {
    let reply = HttpRequest::new(request, None, KEPT_MAX, host_env).and_then(|built| {
        let read_max = KEPT_MAX as u64;
        http.send(HttpRequest { read_max, ..built }, &CancelToken::default())
    });
    match reply {
        Ok(reply) => match refusal(request, &reply) {
            None => ProbeResult { holds: true, message: String::new() },
            Some(reason) => refused(&reason.to_string()),
        },
        Err(error) => refused(&error.to_string()),
    }
}

/// Whether something exists at a path. A link counts if it leads to something.
fn look_at(path: &str) -> ProbeResult {
    match std::fs::metadata(path) {
        Ok(_) => ProbeResult { holds: true, message: String::new() },
        Err(error) if error.kind() == io::ErrorKind::NotFound => refused("does not exist"),
        Err(error) => refused(&error.to_string()),
    }
}

/// The first part of an absolute path, which is where network file systems are mounted.
fn top_directory(path: &str) -> String {
    path.split('/').find(|part| !part.is_empty()).unwrap_or_default().to_owned()
}

fn refused(message: &str) -> ProbeResult {
    ProbeResult { holds: false, message: message.to_owned() }
}

/// The commands that this daemon has started as checks.
#[derive(Debug, Default)]
pub(crate) struct CommandProbes {
    /// The run and the attempt of each command, by the id under which the keeper knows it.
    started: BTreeMap<RunId, (RunId, u32)>,
}

impl CommandProbes {
    /// The launch of an attempt; `None` if it was launched before.
    pub(crate) fn launch(
        &mut self,
        request: &ProbeRequest,
        process: &ResolvedProcess,
        uptime: Span,
    ) -> Option<LaunchRequest> {
        let ProbeRequest { run, attempt, probe } = request;
        // A crash may repeat a check, never its id: the next attempt has another number.
        let id = RunId::from_key(run.nominal, &format!("probe {} {attempt}", run.id));
        if self.started.insert(id, (run.id, *attempt)).is_some() {
            return None;
        }
        let number = RunNumber(u64::from(*attempt));
        let terms = ExecutionPolicy { grace: GRACE, ..ExecutionPolicy::default() };
        let blank = Run::blank(id, number, run.job.clone(), JobUid::from_bits(0), run.nominal);
        let work = Some(ResolvedProgram::Process(Box::new(naming_the_run(process, run.id))));
        let run = Run { args: run.args.clone(), state: State::Starting, work, terms, ..blank };
        let kill_at = Some(uptime.plus(probe.timeout()).plus(GRACE));
        Some(LaunchRequest { run: Arc::new(run), fence: None, launch_by: uptime.plus(LAUNCH_WITHIN), kill_at })
    }

    /// Whether the keeper's program with this id is a check.
    pub(crate) fn contains(&self, id: RunId) -> bool {
        self.started.contains_key(&id)
    }

    /// The answer of a command, if the report is its last one.
    pub(crate) fn finish(&mut self, id: RunId, report: &ProgramReport) -> Option<ProbeReport> {
        let result = match report {
            ProgramReport::Launched
            | ProgramReport::TaskStarted(_)
            | ProgramReport::Progress(_)
            | ProgramReport::LockLost => return None,
            ProgramReport::Ended(outcome) if outcome.success => ProbeResult { holds: true, message: String::new() },
            ProgramReport::Ended(ExitOutcome { reason: Some(Reason::Said(message)), .. }) => refused(message),
            ProgramReport::Ended(ExitOutcome { reason: Some(reason @ Reason::Plugin(_)), .. }) => {
                refused(&reason.to_string())
            }
            ProgramReport::Ended(outcome) => {
                let reason = outcome.reason.as_ref().map_or_else(|| "failed".to_owned(), ToString::to_string);
                let last = outcome.written.as_ref().and_then(|written| written.tail.last());
                refused(&last.map_or_else(|| reason.clone(), |last| format!("{reason}: {last}")))
            }
            ProgramReport::NotLaunched(why) => refused(&format!("not launched: {why}")),
            ProgramReport::Lost => refused("its result is unknown"),
            ProgramReport::KeeperLost => refused("the keeper was lost"),
        };
        let (run, attempt) = self.started.remove(&id)?;
        Some(ProbeReport { run, attempt, result })
    }
}

#[cfg(test)]
mod tests {
    use cronhold_core::JobId;
    use cronhold_core::record::{CommandLine, OutputSummary, ResolvedProbe};
    use cronhold_schedule::Instant;

    use super::*;

    fn request(attempt: u32) -> ProbeRequest {
        let id = RunId::from_key(Instant::EPOCH, "r");
        let job = JobId::parse("j").expect("an id");
        let run = Run::blank(id, RunNumber(7), job, JobUid::from_bits(1), Instant::EPOCH);
        let process = ResolvedProcess::plain(CommandLine::Shell { text: "test -w /data".to_owned(), shell: None });
        ProbeRequest { run: Arc::new(run), attempt, probe: ResolvedProbe::Command(Box::new(process)) }
    }

    fn launch(probes: &mut CommandProbes, attempt: u32) -> Option<LaunchRequest> {
        let request = request(attempt);
        let ResolvedProbe::Command(process) = &request.probe else { panic!("a command") };
        probes.launch(&request, process, Span::from_secs(9))
    }

    #[test]
    fn command_is_launched_once_per_attempt_with_limits() {
        let mut probes = CommandProbes::default();
        let first = launch(&mut probes, 1).expect("a launch");
        assert_eq!(launch(&mut probes, 1), None);
        let second = launch(&mut probes, 2).expect("a launch");
        assert!(first.run.id != second.run.id && first.run.id != request(1).run.id);
        assert_eq!((first.launch_by, first.kill_at), (Span::from_secs(19), Some(Span::from_secs(74))));
        let Some(ResolvedProgram::Process(process)) = &first.run.work else { panic!("{first:?}") };
        let text = format!("export CRONHOLD_RUN_ID={}\ntest -w /data", request(1).run.id);
        assert_eq!(process.command, CommandLine::Shell { text, shell: None });
    }

    #[test]
    fn last_report_of_a_command_is_its_answer() {
        let failed = |tail: &[&str]| {
            let tail = tail.iter().map(|line| (*line).to_owned()).collect();
            let written = Some(OutputSummary { bytes: 1, tail, stderr: None });
            ProgramReport::Ended(ExitOutcome {
                success: false,
                reason: Some(Reason::ExitCode(1)),
                exit: None,
                written,
                response: None,
            })
        };
        let said = |message: &str| match failed(&["a line"]) {
            ProgramReport::Ended(outcome) => {
                ProgramReport::Ended(ExitOutcome { reason: Some(Reason::Said(message.to_owned())), ..outcome })
            }
            other => other,
        };
        for (report, expected) in [
            (ProgramReport::Launched, None),
            (ProgramReport::Ended(ExitOutcome::SUCCESS), Some((true, ""))),
            (failed(&[]), Some((false, "exit code 1"))),
            (failed(&["a", "disk is full"]), Some((false, "exit code 1: disk is full"))),
            (said("3 GB free"), Some((false, "3 GB free"))),
            (ProgramReport::NotLaunched("no such file".to_owned()), Some((false, "not launched: no such file"))),
        ] {
            let mut probes = CommandProbes::default();
            let id = launch(&mut probes, 4).expect("a launch").run.id;
            let found = probes.finish(id, &report);
            let found = found.as_ref().map(|report| (report.result.holds, &report.result.message[..]));
            assert_eq!(found, expected);
            assert_eq!(probes.contains(id), expected.is_none());
        }
    }

    #[test]
    fn file_exists_or_does_not() {
        assert_eq!(look_at("/"), ProbeResult { holds: true, message: String::new() });
        assert_eq!(look_at("/no/such/file"), refused("does not exist"));
        assert!(!look_at("/dev/null/x").holds);
        assert_eq!(
            [top_directory("/data/a/b"), top_directory("relative"), top_directory("/")],
            ["data", "relative", ""]
        );
    }
}
