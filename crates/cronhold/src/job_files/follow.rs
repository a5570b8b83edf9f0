//! The thread that looks at the directories when something happens in them, when somebody asks for it, and now and then
//! anyway. It is not the node's, because a look at many files takes longer than a run may wait.

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
use super::shelf::JobFileRequest;
use super::{JobDirectories, JobFileStatus};
use crate::clock::{self, SystemClock};
use crate::log::Weight;

/// After something happened this long nothing must happen, because whoever writes one file often writes several.
const QUIET: Span = Span::from_millis(100);
/// But it is not waited for longer than so many times that.
const QUIET_TIMES_MAX: usize = 4;
/// Hints can be lost, and some file systems give none.
const LOOK_EVERY: Span = Span::from_secs(30);
/// Requests that are taken at once.
const REQUESTS_AT_ONCE: usize = 64;

/// The thread with all that it needs.
struct JobFileWatcher {
    files: JobDirectories,
    node: NodeHandle,
    store: Arc<dyn Store>,
    clock: SystemClock,
    /// Rings when something happens in one of the directories; absent, when the system does not give it.
    watch: Option<AsyncFd<DirectoryWatch>>,
    /// Whether it was said that not everything can be watched.
    has_complained: bool,
    /// Whether something was found that has to stand for a while before it counts.
    is_open: bool,
}

impl JobDirectories {
    /// Follows the directories from now on.
    pub fn follow(self, node: NodeHandle, store: Arc<dyn Store>) -> io::Result<()> {
        let executor = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        thread::Builder::new().name("job-files".to_owned()).spawn(move || {
            let log = self.log.clone();
            let followed = executor.block_on(async {
                let clock = SystemClock::new()?;
                let watch = DirectoryWatch::new().and_then(AsyncFd::new);
                let trouble = watch.as_ref().err().map(ToString::to_string);
                let watch = watch.ok();
                let mut follower =
                    JobFileWatcher { files: self, node, store, clock, watch, has_complained: false, is_open: false };
                if let Some(trouble) = trouble {
                    follower.complain(&trouble);
                }
                follower.live().await;
                io::Result::Ok(())
            });
            if let Err(error) = followed {
                let words = format!("changes of job files are not seen before the next start: {error}");
                log.emit(Weight::Trouble, "job_files_unwatched", words);
            }
        })?;
        Ok(())
    }
}

impl JobFileWatcher {
    async fn live(&mut self) {
        loop {
            self.cover();
            let (replies, again) = self.wait().await;
            if !replies.is_empty() {
                let answer = self.reload().await;
                replies.into_iter().for_each(|reply| drop(reply.send(answer.clone())));
                continue;
            }
            self.settle_down().await;
            self.look(again).await;
        }
    }

    /// Watches all folders that matter now. What happened in one before it was watched was not heard.
    fn cover(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        let covered = watch.get_mut().cover(self.files.live.places());
        if covered.has_new {
            self.files.shelf.ring();
        }
        if let Some(trouble) = covered.trouble {
            self.complain(&trouble.to_string());
        }
    }

    fn complain(&mut self, trouble: &str) {
        if !std::mem::replace(&mut self.has_complained, true) {
            let line = format!(
                "not all job files can be watched ({trouble}): changes of some are seen after {LOOK_EVERY} only; \
                 see fs.inotify in `man 7 inotify`"
            );
            self.files.log.emit(Weight::Trouble, "job_files_polled", line);
        }
    }

    /// Waits until there is a reason to look. Answers who wants to know what came of it, and whether it may be something
    /// else than files that has changed.
    async fn wait(&mut self) -> (Vec<oneshot::Sender<ReloadReport>>, bool) {
        let shelf: Arc<JobFileStatus> = self.files.shelf();
        let again = tokio::select! {
            biased;
            () = shelf.requests.ready() => true,
            () = rang(self.watch.as_ref()) => false,
            () = self.clock.sleep(LOOK_EVERY) => true,
        };
        let requests = shelf.requests.take(REQUESTS_AT_ONCE).into_iter();
        let replies = requests.filter_map(|request| match request {
            JobFileRequest::Look => None,
            JobFileRequest::Reload(reply) => Some(reply),
        });
        (replies.collect(), again)
    }

    /// Waits until whoever writes files has stopped for a moment.
    async fn settle_down(&self) {
        for _ in 0..QUIET_TIMES_MAX {
            self.clock.sleep(QUIET).await;
            if !self.watch.as_ref().is_some_and(|watch| watch.get_ref().take()) {
                return;
            }
        }
    }

    /// Takes over what has changed. What takes something away has to be so twice, because somebody may be in the middle of
    /// replacing a file. `again` is whether what others have done can matter too.
    async fn look(&mut self, again: bool) {
        let again = again && self.files.mistakes() > 0;
        let takes_over = self.files.hold(&self.node, &*self.store, &self.clock).await;
        let has_news = self.files.refresh(clock::now());
        if !has_news && !again && !self.is_open && !takes_over {
            return;
        }
        self.files.check(clock::now());
        let mut plan = self.plan(again, takes_over).await;
        let removals = plan.take_removals(|_| true);
        self.apply(plan).await;
        let untold = self.files.untold();
        self.is_open = false;
        if removals.is_empty() && untold.is_empty() {
            return self.files.tell(None);
        }
        self.clock.sleep(QUIET).await;
        if self.files.refresh(clock::now()) {
            self.files.check(clock::now());
        }
        let mut plan = self.plan(false, false).await;
        let unsure = plan.take_removals(|removal| !removals.contains(removal));
        self.apply(plan).await;
        self.files.tell(Some(&untold));
        // Whatever was not so before is looked at once more.
        self.is_open = !unsure.is_empty() || !self.files.untold().is_empty();
        if self.is_open {
            self.files.shelf.ring();
        }
    }

    /// Reads everything for somebody who waits for it.
    async fn reload(&mut self) -> ReloadReport {
        if let Err(fault) = self.files.look_up(&*self.store).await {
            return ReloadReport { summary: format!("the store cannot be read: {fault}"), mistakes: 0 };
        }
        let takes_over = self.files.hold(&self.node, &*self.store, &self.clock).await;
        self.files.refresh(clock::now());
        self.files.check(clock::now());
        self.files.share();
        let plan = self.plan(true, takes_over).await;
        let (unchanged, kept) = (plan.unchanged, plan.kept);
        let applied = self.apply(plan).await;
        self.files.tell(None);
        let words = applied.words(unchanged, kept);
        let summary = [format!("{}: {words}", self.files.shown())].into_iter().chain(self.files.left_to_others());
        let summary = summary.collect::<Vec<_>>().join("; ");
        ReloadReport { summary, mistakes: self.files.mistakes() as u64 }
    }

    /// What has to change, after the node has got new calendars if there are any. Who takes over a directory looks at all
    /// of it, because whoever had it before may have had other files.
    async fn plan(&mut self, again: bool, takes_over: bool) -> ApplyPlan {
        if takes_over {
            self.files.share();
        }
        let mut plan = self.files.plan(again || takes_over);
        let Some(calendars) = self.files.new_calendars() else {
            if takes_over {
                self.files.replan(&mut plan);
            }
            return plan;
        };
        self.files.world.calendars = Arc::new(calendars);
        self.files.shelf.set_world(self.files.world.clone());
        self.node.renew_calendars(Arc::clone(&self.files.world.calendars)).await;
        // Jobs that came from elsewhere meanwhile can name calendars too.
        let known = self.files.look_up(&*self.store).await;
        if let Err(fault) = known {
            let words = format!("jobs that name calendars are not all known: {fault}");
            self.files.log.emit(Weight::Trouble, "job_files_unknown", words);
        }
        self.files.replan(&mut plan);
        let words = format!("{}: calendars have changed", self.files.shown());
        self.files.log.emit(Weight::Usual, "calendars_changed", words);
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

/// Waits until something happens in one of the directories.
async fn rang(watch: Option<&AsyncFd<DirectoryWatch>>) {
    let Some(watch) = watch else { return std::future::pending().await };
    loop {
        // An error here would be one of the executor, and the slow look goes on.
        let Ok(mut ready) = watch.readable().await else { return std::future::pending().await };
        ready.clear_ready();
        if watch.get_ref().take() {
            return;
        }
    }
}
