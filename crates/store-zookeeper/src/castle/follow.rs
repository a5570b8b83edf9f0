//! The task that follows castle-cron's znodes in a node: it reports jobs that other programs have changed and servers
//! that come and go, and keeps the times true. After an interruption it reads everything again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cronhold_core::JobId;
use cronhold_store::Fault;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::warn;

use super::CastleZnodes;
use crate::ensemble::random;
use crate::paths::unescape_name;
use crate::wire::{TreeWatch, WatchReport, ZooKeeperSession};

/// Pause after the ensemble was unreachable.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Pause between two writes of times, so that many starts a second need few writes.
const TIMES_PAUSE: Duration = Duration::from_millis(100);

/// When a node writes the time that another process should have written.
const TIMES_OF_OTHERS: Duration = Duration::from_secs(2);

/// How long `/nextjob` may be wrong before a node corrects it, at least. Each node adds a random part, so that the others
/// find it true.
const CORRECTION_PAUSE: Duration = Duration::from_millis(20);

/// The random part in milliseconds, at most.
const CORRECTION_SPREAD: u64 = 100;

/// Pause after a correction that had to wait for too long.
const LOCKED_PAUSE: Duration = Duration::from_secs(5);

/// What has to be done, and when.
#[derive(Debug, Default)]
struct FollowerAgenda {
    /// Names in `/jobs` that have changed.
    names: BTreeSet<String>,
    has_server_changes: bool,
    has_next_job_changes: bool,
    is_ended: bool,
    /// Jobs whose time this process writes, and from when on.
    times: BTreeSet<JobId>,
    times_at: Option<Instant>,
    /// Jobs whose time another process should write, and when this one does.
    others_times: BTreeSet<JobId>,
    others_at: Option<Instant>,
    /// When `/nextjob` is corrected, if it is wrong.
    correct_at: Option<Instant>,
    /// The correction that is under way. It may wait for `/joblock`, and nothing else waits for it.
    correction: Option<JoinHandle<Result<bool, Fault>>>,
}

/// Follows the znodes until the store is closed.
pub(super) async fn follow(castle: Arc<CastleZnodes>) {
    loop {
        let result = castle.follow_session().await;
        castle.next_job.set_active(false);
        if result.is_err() {
            sleep(RETRY_PAUSE).await;
        }
    }
}

impl FollowerAgenda {
    fn add(&mut self, report: WatchReport, path_kind: impl FnOnce(&mut Self, String)) {
        match report {
            WatchReport::Changed(path) => path_kind(self, path),
            WatchReport::Interrupted => {}
            WatchReport::Ended => self.is_ended = true,
        }
    }

    fn add_job(&mut self, path: &str, folder: &str) {
        if let Some(znode) = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) {
            // Only children of the folder are jobs.
            self.names.extend((!znode.contains('/')).then(|| unescape_name(znode)));
        }
    }

    fn add_times(&mut self, (here, elsewhere): (BTreeSet<JobId>, BTreeSet<JobId>)) {
        let now = Instant::now();
        if !here.is_empty() {
            self.times_at.get_or_insert(now);
            self.times.extend(here);
        }
        if !elsewhere.is_empty() {
            self.others_at.get_or_insert(now + TIMES_OF_OTHERS);
            self.others_times.extend(elsewhere);
        }
    }

    /// Waits until the correction that is under way has ended.
    async fn correction_ends(&mut self) -> Result<(), Fault> {
        let Some(correction) = &mut self.correction else { return std::future::pending().await };
        let result = correction.await;
        self.correction = None;
        // A task that is aborted or panics did nothing, and the next one tries again.
        let is_done = result.unwrap_or(Ok(true))?;
        if !is_done {
            warn!(event = "job_lock_held", "/nextjob is not corrected: another client has held /joblock for long");
        }
        self.has_next_job_changes = true;
        self.correct_at = Some(Instant::now() + if is_done { RETRY_PAUSE } else { LOCKED_PAUSE });
        Ok(())
    }

    /// When something has to be done without a report.
    fn wakeup(&self) -> Instant {
        const IDLE: Duration = Duration::from_secs(3_600);
        let correct_at = self.correct_at.filter(|_| self.correction.is_none());
        let times = [self.times_at, self.others_at, correct_at];
        times.into_iter().flatten().min().unwrap_or_else(|| Instant::now() + IDLE)
    }
}

impl CastleZnodes {
    /// Follows the znodes until the watches end.
    async fn follow_session(self: &Arc<Self>) -> Result<(), Fault> {
        let session = self.ensemble.session().await?;
        let paths = self.ensemble.paths();
        let mut jobs = session.watch(&paths.castle_jobs()).await?;
        let mut servers = session.watch(&paths.castle_servers()).await?;
        let mut next_job = session.watch(&paths.castle_next_job()).await?;
        self.renew_server(&session).await?;
        self.mirror.read(|_| ()).await?;
        let found = self.texts.reload(&session, paths).await?;
        self.report_changed(found.into_iter().filter(|form| !form.status().is_settled()).map(|form| form.name));
        self.next_job.set_active(true);
        let mut agenda = FollowerAgenda { has_server_changes: true, has_next_job_changes: true, ..Default::default() };
        agenda.times.extend(self.all_jobs());
        agenda.times_at = Some(Instant::now());
        let mut shown = None;
        while !agenda.is_ended {
            self.work(&session, &mut agenda, &mut shown).await?;
            let folder = paths.castle_jobs();
            let wakeup = agenda.wakeup();
            tokio::select! {
                ended = agenda.correction_ends() => ended?,
                report = jobs.next() => agenda.add(report, |agenda, path| agenda.add_job(&path, &folder)),
                report = servers.next() => agenda.add(report, |agenda, _| agenda.has_server_changes = true),
                report = next_job.next() => agenda.add(report, |agenda, _| agenda.has_next_job_changes = true),
                () = self.mirror.times_changed() => {}
                () = sleep_until(wakeup) => {}
            }
            drain(&mut jobs, &mut agenda, |agenda, path| agenda.add_job(&path, &folder)).await;
        }
        Ok(())
    }

    /// Does what is due. `shown` is the data of `/nextjob`.
    async fn work(
        self: &Arc<Self>,
        session: &Arc<ZooKeeperSession>,
        agenda: &mut FollowerAgenda,
        shown: &mut Option<Vec<u8>>,
    ) -> Result<(), Fault> {
        if std::mem::take(&mut agenda.has_server_changes) {
            self.read_servers(session).await?;
        }
        let names: Vec<String> = std::mem::take(&mut agenda.names).into_iter().collect();
        if !names.is_empty() {
            let found = self.texts.refresh(session, self.ensemble.paths(), &names).await?;
            agenda.times.extend(names.iter().filter_map(|name| JobId::parse(name).ok()));
            agenda.times_at.get_or_insert_with(Instant::now);
            self.report_changed(found.into_iter().filter(|form| !form.status().is_settled()).map(|form| form.name));
        }
        agenda.add_times(self.mirror.with_schedule(super::ScheduleIndex::take_changes));
        let now = Instant::now();
        if agenda.others_at.is_some_and(|at| at <= now) {
            agenda.others_at = None;
            agenda.times.append(&mut agenda.others_times);
            agenda.times_at.get_or_insert(now);
        }
        if agenda.times_at.is_some_and(|at| at <= now) {
            let times = std::mem::take(&mut agenda.times);
            self.write_times(session, times).await?;
            agenda.times_at = None;
        }
        if !agenda.times.is_empty() {
            agenda.times_at.get_or_insert(now + TIMES_PAUSE);
        }
        self.check_next_job(session, agenda, shown).await
    }

    /// Corrects `/nextjob` if it has been wrong for a while.
    async fn check_next_job(
        self: &Arc<Self>,
        session: &Arc<ZooKeeperSession>,
        agenda: &mut FollowerAgenda,
        shown: &mut Option<Vec<u8>>,
    ) -> Result<(), Fault> {
        if std::mem::take(&mut agenda.has_next_job_changes) {
            let path = [self.next_job.path().to_owned()];
            *shown = session.read(&path, false).await?.pop().flatten().map(|znode| znode.data);
            self.next_job.set_active(shown.is_some());
        }
        let is_true = |shown: &Option<Vec<u8>>| match (self.next_job.expected(), shown) {
            (Some(expected), Some(shown)) => expected.as_bytes() == shown.as_slice(),
            (Some(_), None) => false,
            (None, _) => true,
        };
        if is_true(shown) {
            agenda.correct_at = None;
            return Ok(());
        }
        let now = Instant::now();
        match agenda.correct_at {
            Some(at) if at <= now && agenda.correction.is_none() => {
                let (castle, session) = (Arc::clone(self), Arc::clone(session));
                agenda.correction = Some(tokio::spawn(async move { castle.correct_next_job(&session).await }));
            }
            Some(_) => {}
            None => {
                let spread = Duration::from_millis(random()? % CORRECTION_SPREAD);
                agenda.correct_at = Some(now + CORRECTION_PAUSE + spread);
            }
        }
        Ok(())
    }
}

/// Adds all reports that have arrived.
async fn drain(watch: &mut TreeWatch, agenda: &mut FollowerAgenda, add: impl Fn(&mut FollowerAgenda, String)) {
    while !agenda.is_ended {
        let report = tokio::select! {
            biased;
            report = watch.next() => report,
            () = std::future::ready(()) => return,
        };
        agenda.add(report, &add);
    }
}
