//! The thread that reads the directories again: when the kernel reports a change, on request, and at a fixed interval.
//! It is not the thread of the node, because reading many files takes longer than a run may be delayed.

use std::io;
use std::sync::Arc;
use std::thread;

use cronhold_api::ReloadReport;
use cronhold_core::JobId;
use cronhold_engine::{MachineClock, NodeHandle};
use cronhold_jobfile::directory::DirectoryWatch;
use cronhold_schedule::Span;
use cronhold_store::Store;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

use super::plan::{self, ApplyPlan, ApplyResult};
use super::status::JobFileRequest;
use super::{JobDirectories, JobFileStatus};
use crate::clock::{self, SystemClock};
use crate::log::Weight;
use crate::memory::return_freed_memory;

/// After a change, files are read when no other change follows for this long. A program that writes one file often
/// writes several.
const QUIET: Span = Span::from_millis(100);
/// Files are read after this many waits of [`QUIET`] at the latest.
const QUIET_TIMES_MAX: usize = 4;
/// The interval at which directories are read without a notification. Notifications can be lost, and some file systems
/// send none.
const REFRESH_INTERVAL: Span = Span::from_secs(30);
/// Requests that are handled together.
const REQUESTS_AT_ONCE: usize = 64;

/// The state of the thread.
struct JobFileWatcher {
    files: JobDirectories,
    node: NodeHandle,
    store: Arc<dyn Store>,
    clock: SystemClock,
    /// Notifies of changes in the directories; `None` if the system does not provide that.
    watch: Option<AsyncFd<DirectoryWatch>>,
    /// Whether a failure to watch was logged.
    has_logged_failure: bool,
    /// Whether a removal or a mistake was found that must persist before it is applied or reported.
    is_open: bool,
}

impl JobDirectories {
    /// Starts the thread that watches the directories.
    pub fn follow(self, node: NodeHandle, store: Arc<dyn Store>) -> io::Result<()> {
        let executor = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        thread::Builder::new().name("job-files".to_owned()).spawn(move || {
            let log = self.log.clone();
            let followed = executor.block_on(async {
                let clock = SystemClock::new()?;
                let watch = DirectoryWatch::new().and_then(AsyncFd::new);
                let failure = watch.as_ref().err().map(ToString::to_string);
                let watch = watch.ok();
                let mut watcher = JobFileWatcher {
                    files: self,
                    node,
                    store,
                    clock,
                    watch,
                    has_logged_failure: false,
                    is_open: false,
                };
                if let Some(failure) = failure {
                    watcher.log_watch_failure(&failure);
                }
                watcher.run().await;
                io::Result::Ok(())
            });
            if let Err(error) = followed {
                let message = format!("job files are not watched, and changes apply at the next start: {error}");
                log.emit(Weight::Trouble, "job_files_unwatched", message);
            }
        })?;
        Ok(())
    }
}

impl JobFileWatcher {
    async fn run(&mut self) {
        loop {
            self.files.save_cache(clock::now());
            self.update_watches();
            return_freed_memory();
            let (replies, again) = self.wait().await;
            if !replies.is_empty() {
                let answer = self.reload().await;
                replies.into_iter().for_each(|reply| drop(reply.send(answer.clone())));
                continue;
            }
            self.wait_until_quiet().await;
            self.refresh(again).await;
        }
    }

    /// Watches all folders that exist now. Changes in a new folder before it was watched are not reported, so the
    /// directories are read again.
    fn update_watches(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        let covered = watch.get_mut().cover(self.files.live.places());
        if covered.has_new {
            self.files.status.request_check();
        }
        if let Some(trouble) = covered.trouble {
            self.log_watch_failure(&trouble.to_string());
        }
    }

    fn log_watch_failure(&mut self, failure: &str) {
        if !std::mem::replace(&mut self.has_logged_failure, true) {
            let message = format!(
                "cannot watch all job files ({failure}): some changes apply only after {REFRESH_INTERVAL}; \
                 see fs.inotify in `man 7 inotify`"
            );
            self.files.log.emit(Weight::Trouble, "job_files_polled", message);
        }
    }

    /// Waits until there is a reason to read the directories. Returns the callers that wait for a report, and whether
    /// something other than files may have changed.
    async fn wait(&mut self) -> (Vec<oneshot::Sender<ReloadReport>>, bool) {
        let status: Arc<JobFileStatus> = self.files.status();
        let again = tokio::select! {
            biased;
            () = status.requests.ready() => true,
            () = wait_for_change(self.watch.as_ref()) => false,
            () = self.clock.sleep(REFRESH_INTERVAL) => true,
        };
        let requests = status.requests.take(REQUESTS_AT_ONCE).into_iter();
        let replies = requests.filter_map(|request| match request {
            JobFileRequest::Check => None,
            JobFileRequest::Reload(reply) => Some(reply),
        });
        (replies.collect(), again)
    }

    /// Waits until no file changes for a moment.
    async fn wait_until_quiet(&self) {
        for _ in 0..QUIET_TIMES_MAX {
            self.clock.sleep(QUIET).await;
            if !self.watch.as_ref().is_some_and(|watch| watch.get_ref().take()) {
                return;
            }
        }
    }

    /// Applies what has changed. A removal or a mistake must be found twice, because an editor may be in the middle of
    /// replacing a file. With `again`, files with mistakes are tried again, because a job that changed elsewhere may
    /// have fixed them.
    async fn refresh(&mut self, again: bool) {
        let again = again && self.files.mistakes() > 0;
        let takes_over = self.files.acquire_locks(&self.node, &*self.store, &self.clock).await;
        let has_changed = self.files.refresh(clock::now());
        if !has_changed && !again && !self.is_open && !takes_over {
            return;
        }
        if again || self.is_open || takes_over {
            self.files.check(clock::now());
        } else {
            self.files.check_changes(clock::now());
        }
        let mut plan = self.plan(again, takes_over).await;
        let removals = plan.take_removals(|_| true);
        self.apply(plan).await;
        let unreported = self.files.unreported();
        self.is_open = false;
        if removals.is_empty() && unreported.is_empty() {
            return self.files.report_mistakes(None);
        }
        self.clock.sleep(QUIET).await;
        if self.files.refresh(clock::now()) {
            self.files.check_changes(clock::now());
        }
        let mut plan = self.plan(false, false).await;
        let unsure = plan.take_removals(|removal| !removals.contains(removal));
        self.apply(plan).await;
        self.files.report_mistakes(Some(&unreported));
        // What was found only once is checked again.
        self.is_open = !unsure.is_empty() || !self.files.unreported().is_empty();
        if self.is_open {
            self.files.status.request_check();
        }
    }

    /// Reads all files and stored jobs, for a caller that waits for the report.
    async fn reload(&mut self) -> ReloadReport {
        if let Err(fault) = self.files.load_stored(&*self.store).await {
            return ReloadReport { summary: format!("cannot read the store: {fault}"), mistakes: 0 };
        }
        let takes_over = self.files.acquire_locks(&self.node, &*self.store, &self.clock).await;
        self.files.refresh_all(clock::now());
        self.files.check(clock::now());
        let plan = self.plan(true, takes_over).await;
        let (unchanged, kept) = (plan.unchanged, plan.kept);
        let applied = self.apply(plan).await;
        self.files.report_mistakes(None);
        let result = applied.summary(unchanged, kept);
        let summary = [format!("{}: {result}", self.files.shown())].into_iter().chain(self.files.left_to_others());
        let summary = summary.collect::<Vec<_>>().join("; ");
        ReloadReport { summary, mistakes: self.files.mistakes() as u64 }
    }

    /// The changes to apply. If calendars have changed, the node receives them first. A node that takes over a
    /// directory compares all of it, because the previous holder may have had different files.
    async fn plan(&mut self, again: bool, takes_over: bool) -> ApplyPlan {
        let mut plan = self.files.plan(again || takes_over);
        let Some(calendars) = self.files.new_calendars() else {
            if takes_over {
                self.files.replan(&mut plan);
            }
            return plan;
        };
        self.files.world.calendars = Arc::new(calendars);
        self.files.status.set_world(self.files.world.clone());
        self.node.renew_calendars(Arc::clone(&self.files.world.calendars)).await;
        // Jobs that were created elsewhere in the meantime can name calendars too.
        let known = self.files.load_stored(&*self.store).await;
        if let Err(fault) = known {
            let message = format!("cannot find all jobs that name calendars: {fault}");
            self.files.log.emit(Weight::Trouble, "job_files_unknown", message);
        }
        self.files.replan(&mut plan);
        let message = format!("{}: calendars have changed", self.files.shown());
        self.files.log.emit(Weight::Usual, "calendars_changed", message);
        plan
    }

    async fn apply(&mut self, plan: ApplyPlan) -> ApplyResult {
        let applied = self.files.apply(plan, &self.node, &self.clock).await;
        if let Some(changes) = applied.changes() {
            let ids = |ids: &[JobId]| (!ids.is_empty()).then(|| plan::shown(ids));
            let (jobs_put, jobs_removed, shown) = (ids(&applied.put), ids(&applied.removed), self.files.shown());
            self.files.log.scope(|| {
                tracing::info!(event = "job_files_applied", jobs_removed, jobs_put, "{shown}: {changes}");
            });
        }
        applied
    }
}

/// Waits until something changes in one of the directories. Never returns without a watch.
async fn wait_for_change(watch: Option<&AsyncFd<DirectoryWatch>>) {
    let Some(watch) = watch else { return std::future::pending().await };
    loop {
        // Only the executor can fail here. The directories are still read at the fixed interval.
        let Ok(mut ready) = watch.readable().await else { return std::future::pending().await };
        ready.clear_ready();
        if watch.get_ref().take() {
            return;
        }
    }
}
