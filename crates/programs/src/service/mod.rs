//! Programs that are requests to a service: `http`, and `remote` with its tasks. [`ServiceTable`] decides, threads of a [`WorkerPool`] send the requests, and
//! the responses go into files, from which they are stored like the outputs of processes.

mod judge;
mod table;
#[cfg(test)]
mod testing;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use cronhold_core::RunId;
use cronhold_core::command::ProgramReport;
use cronhold_core::record::{OutputSummary, ResolvedProgram, Run};
use cronhold_core::signal::Signal;
use cronhold_core::template::Bindings;
use cronhold_engine::{LaunchRequest, MachineClock};
use cronhold_schedule::{Span, ZoneRegistry};
use cronhold_store::lock_mutex;

use self::judge::judge;
pub(crate) use self::judge::refusal;
use self::table::{RequestKind, RequestTask, ServiceTable};
use crate::host_env::HostEnv;
use crate::http::{HttpClient, HttpReply, HttpRequest};
use crate::output::gap_notice;
use crate::worker_pool::{PoolLimits, WorkerPool};

/// Requests of programs at a time, in all and to one server. Others wait for their turn.
const LIMITS: PoolLimits = PoolLimits { threads: 256, per_group: 64 };
/// Bytes of a response that are kept as the output of the run.
pub(crate) const KEPT_MAX: usize = 1 << 20;

/// Called when there may be a report or an output to take.
pub(crate) type NotifyFn = Box<dyn Fn() + Send + Sync>;

/// The programs of this node that are requests.
#[derive(Debug)]
pub(crate) struct ServicePrograms {
    shared: Arc<ServiceShared>,
    clock: Arc<dyn MachineClock>,
    workers: WorkerPool<RequestTask>,
}

struct ServiceShared {
    table: Mutex<ServiceTable>,
    http: Arc<HttpClient>,
    host_env: HostEnv,
    /// The directory of responses that are being stored.
    responses: PathBuf,
    notify: NotifyFn,
    /// The zones for expressions about answers.
    zones: Bindings,
    clock: Arc<dyn MachineClock>,
}

impl ServicePrograms {
    /// No programs. Responses are written to a directory below `data`; those of an earlier process are deleted.
    pub(crate) fn new(
        data: &Path,
        clock: Arc<dyn MachineClock>,
        http: Arc<HttpClient>,
        host_env: HostEnv,
        notify: NotifyFn,
    ) -> Self {
        let responses = data.join("responses");
        // A file that stays only takes room.
        let _ = fs::remove_dir_all(&responses);
        let zones = Bindings::new(Arc::new(ZoneRegistry::bundled()), Arc::default());
        let (table, worker_clock) = (Mutex::default(), Arc::clone(&clock));
        let shared = ServiceShared { table, http, host_env, responses, notify, zones, clock: worker_clock };
        let shared = Arc::new(shared);
        let worker = Arc::clone(&shared);
        let workers = WorkerPool::new("requests", LIMITS, Box::new(move |task| worker.send(&task)));
        Self { shared, clock, workers }
    }

    pub(crate) fn launch(&self, request: &LaunchRequest) {
        let LaunchRequest { run, launch_by, kill_at, .. } = request;
        self.change(|table, uptime| table.launch(run, *launch_by, *kill_at, uptime));
    }

    pub(crate) fn adopt(&self, run: &Arc<Run>) {
        self.change(|table, uptime| table.adopt(run, uptime));
    }

    pub(crate) fn extend(&self, leases: &[(RunId, Span)]) {
        self.change(|table, uptime| table.extend(leases, uptime));
    }

    pub(crate) fn signal(&self, run: RunId, signal: Signal) {
        self.change(|table, uptime| table.signal(run, signal, uptime));
    }

    /// Requests the end of a run's program. A task that this node has not followed yet is followed to its end.
    pub(crate) fn stop(&self, run: &Run) {
        self.change(|table, uptime| match table.has(run.id) || run.remote_task().is_none() {
            true => table.signal(run.id, run.terms.signal, uptime),
            false => table.adopt(&Arc::new(run.clone()), uptime),
        });
    }

    /// A change of an unfinished run is committed.
    pub(crate) fn committed(&self, run: &Arc<Run>) {
        self.change(|table, uptime| table.committed(run, uptime));
        (self.shared.notify)();
    }

    /// The end of a run is committed, or the run does not belong to this node any more.
    pub(crate) fn settled(&self, run: RunId) {
        if self.table().settle(run) {
            let _ = fs::remove_file(self.response_file(run));
        }
    }

    pub(crate) fn has(&self, run: RunId) -> bool {
        self.table().has(run)
    }

    pub(crate) fn take_unstored(&self, most: usize) -> Vec<(RunId, u64)> {
        self.table().take_unstored(most)
    }

    /// The output of a run is stored.
    pub(crate) fn output_stored(&self, run: RunId, written: OutputSummary) {
        self.table().output_stored(run, written);
    }

    pub(crate) fn take_reports(&self, uptime: Span, most: usize) -> Vec<(RunId, ProgramReport)> {
        let mut reports = Vec::new();
        self.change(|table, _| reports = table.take_reports(uptime, most));
        reports
    }

    /// The uptime at which there is a report to take.
    pub(crate) fn next_due(&self) -> Option<Span> {
        self.table().next()
    }

    /// The file with the response of a run.
    pub(crate) fn response_file(&self, run: RunId) -> PathBuf {
        self.shared.responses.join(run.to_string())
    }

    fn table(&self) -> MutexGuard<'_, ServiceTable> {
        lock_mutex(&self.shared.table)
    }

    /// Changes the table and sends the requests that follow.
    fn change(&self, change: impl FnOnce(&mut ServiceTable, Span)) {
        let requests = {
            let mut table = self.table();
            change(&mut table, self.clock.uptime());
            table.take_requests()
        };
        for task in requests {
            self.workers.submit(task.request.origin().to_owned(), task);
        }
    }
}

/// Whether the program of a run is a request.
pub(crate) fn is_service(run: &Run) -> bool {
    matches!(run.work, Some(ResolvedProgram::Http(_) | ResolvedProgram::Remote(_)))
}

impl ServiceShared {
    /// Sends a request, and keeps its response if that is the output of the run. The run's id is the idempotency key of
    /// the program, and of the start of a task.
    fn send(&self, task: &RequestTask) {
        let id = task.run.id;
        let has_key = matches!(task.kind, RequestKind::Program | RequestKind::Start);
        let key = has_key.then(|| id.to_string());
        let built = HttpRequest::new(&task.request, key, KEPT_MAX, &self.host_env);
        let result = built.and_then(|request| self.http.send(request, &task.token));
        let judgement = judge(task, &result, &self.zones);
        let is_output = lock_mutex(&self.table).receive(id, &task.token, judgement, self.clock.uptime());
        if is_output {
            let length = match &result {
                // If it cannot be written, the run has no output.
                Ok(reply) if !reply.body.is_empty() => self.write_response(&task.run, reply).unwrap_or(0),
                _ => 0,
            };
            lock_mutex(&self.table).output_written(id, length);
        }
        (self.notify)();
    }

    /// Writes the body of a response to its file, without secrets. Returns the length of the file.
    fn write_response(&self, run: &Run, reply: &HttpReply) -> io::Result<u64> {
        fs::create_dir_all(&self.responses)?;
        let mut file = File::create(self.responses.join(run.id.to_string()))?;
        let mut body = reply.body.clone();
        if let Some(program) = &run.work {
            self.host_env.secrets_of(program).hide(&mut body);
        }
        file.write_all(&body)?;
        let left_out = reply.length.saturating_sub(reply.body.len() as u64);
        if left_out > 0 {
            file.write_all(gap_notice(left_out).as_bytes())?;
        }
        Ok(file.metadata()?.len())
    }
}

impl std::fmt::Debug for ServiceShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServiceShared({:?})", lock_mutex(&self.table))
    }
}
