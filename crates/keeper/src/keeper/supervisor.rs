//! Owns the programs: starts the requested ones, waits for them, and ends them. Each launch is in the journal before
//! its program is started; a launch in the journal is either started in the same turn, or refused and recorded as
//! refused.

use std::rc::Rc;

use rustix::process::{Signal, WaitOptions, WaitStatus};

use super::ending_scan::{EndingScan, signal_group};
use super::launch_queue::{BATCH, LaunchQueue};
use super::output_schedule::OutputSchedule;
use crate::cgroups::Cgroups;
use crate::collector::OutputCollector;
use crate::ending::Ending;
use crate::events::{Events, Source};
use crate::journal::{JournalEntry, RotatingJournal};
use crate::output_pipe::{ProgramEnds, ProgramPipes};
use crate::outputs::{OutputFiles, OutputSize};
use crate::protocol::{FromKeeper, ListedProgram, ProcessExit, ProgramEnd, ProgramLaunch, RunKey};
use crate::refusal::Refusal;
use crate::spawn::{READY, REPORT_MAX, SpawnError, SpawnedProcess, Spawner, needs_stage, truncated};
use crate::table::{FinishedProgram, ProgramTable, RunningProgram};
use crate::tree::ProcessTree;
use crate::{clock, fail, log};

/// The longest reason for a refusal, in bytes.
const REASON_MAX: usize = 1_024;
/// Children that are waited for in one turn; the rest follow in the next.
const REAPS_MAX: usize = 4_096;

/// The programs of a keeper.
#[derive(Debug)]
pub(super) struct Supervisor {
    queue: LaunchQueue,
    table: ProgramTable,
    journal: RotatingJournal,
    outputs: OutputFiles,
    output_schedule: OutputSchedule,
    collector: OutputCollector,
    cgroups: Cgroups,
    spawner: Spawner,
    scan: EndingScan,
    /// Reports that are sent to the daemon at the end of the turn, when the journal is on disk.
    news: Vec<FromKeeper>,
    /// Whether more children may have ended than were waited for.
    has_unreaped: bool,
    /// Why the journal could not be written when a launch last needed it.
    journal_error: Option<String>,
}

/// A launch whose program can be started.
struct PreparedLaunch {
    launch: ProgramLaunch,
    pipes: Rc<ProgramPipes>,
    /// The ends of the pipes for the program.
    program_ends: ProgramEnds,
}

/// What the second stage of a launch has reported.
enum StageReport {
    Pending,
    /// It became the program, or was stopped before that.
    Started,
    /// Why it could not become the program.
    Failed(String),
}

impl Supervisor {
    pub(super) fn new(
        table: ProgramTable,
        journal: RotatingJournal,
        (outputs, collector): (OutputFiles, OutputCollector),
        cgroups: Cgroups,
        spawner: Spawner,
    ) -> Self {
        Self {
            queue: LaunchQueue::default(),
            table,
            journal,
            outputs,
            output_schedule: OutputSchedule::default(),
            collector,
            cgroups,
            spawner,
            scan: EndingScan::default(),
            news: Vec::new(),
            has_unreaped: false,
            journal_error: None,
        }
    }

    /// All programs that a daemon has to know.
    pub(super) fn list(&self) -> Vec<ListedProgram> {
        self.table.list()
    }

    /// What cannot be done on this machine, as messages.
    pub(super) fn warnings(&self) -> Vec<String> {
        self.cgroups.warnings()
    }

    /// Whether no program runs and no launch waits.
    pub(super) fn is_idle(&self) -> bool {
        self.table.running_count() == 0 && self.queue.is_empty()
    }

    pub(super) fn has_running(&self) -> bool {
        self.table.running_count() > 0
    }

    pub(super) fn has_launches(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether more launches may be read from the daemon.
    pub(super) fn has_room(&self) -> bool {
        !self.queue.is_full()
    }

    /// When the next action is due; `None` if there is none.
    pub(super) fn next_due(&self) -> Option<u64> {
        if self.has_launches() || self.has_unreaped {
            return Some(0);
        }
        let dues = [self.table.next_due(), self.output_schedule.due(self.has_running()), self.collector.due()];
        dues.into_iter().flatten().min()
    }

    /// Reports that the keeper responds, and whether it can start programs.
    pub(super) fn answer_ping(&mut self) {
        if self.journal_error.is_some() {
            // A launch would find out whether the disk works again, but that launch would be lost.
            self.journal_error = self.journal.probe().err().map(|error| error.to_string());
        }
        let refusal = match &self.journal_error {
            Some(error) => Some(Refusal::JournalFailed(error.clone())),
            None if self.journal.room() == 0 => Some(Refusal::JournalFull),
            None => None,
        };
        self.news.push(FromKeeper::Pong { problem: refusal.map(|refusal| refusal.to_string()) });
    }

    /// Takes the reports since the last call.
    pub(super) fn take_news(&mut self) -> Vec<FromKeeper> {
        std::mem::take(&mut self.news)
    }

    /// A daemon is gone, or another one has taken over. Launches that are not in the journal are dropped: the next
    /// daemon reads in its list what was begun.
    pub(super) fn drop_queued(&mut self) {
        self.queue.clear();
    }
}

/// From a launch to a program that runs.
impl Supervisor {
    /// Takes a launch, unless it is clear already that it will be refused. A run that is known stays as it is.
    pub(super) fn enqueue(&mut self, launch: ProgramLaunch, is_retiring: bool) {
        let run = launch.run;
        let refusal = match self.table.refusal(run) {
            Some(refusal) => Some(refusal),
            None if self.queue.contains(run) => Some(Refusal::Queued),
            None if is_retiring => Some(Refusal::Retiring),
            None if launch.argv.is_empty() => Some(Refusal::NoProgram),
            None => None,
        };
        match refusal {
            Some(refusal) => self.news.push(FromKeeper::Refused { run, why: refusal.to_string() }),
            None => self.queue.push(launch),
        }
    }

    /// Starts the programs of one turn. Returns whether there were any.
    pub(super) fn launch_batch(&mut self, events: &Events) -> bool {
        let launches = self.record_batch();
        let launches = self.commit(launches);
        let is_busy = !launches.is_empty();
        // The collector has the pipes before any program writes to them.
        launches.iter().for_each(|prepared| self.collector.add(prepared.launch.run, &prepared.pipes));
        self.collector.send(clock::now());
        launches.into_iter().for_each(|prepared| self.launch(prepared, events));
        is_busy
    }

    /// Chooses what is started in this turn, and adds it to the journal.
    fn record_batch(&mut self) -> Vec<PreparedLaunch> {
        let mut launches = Vec::new();
        let now = clock::now();
        for launch in self.queue.take_batch() {
            let run = launch.run;
            if launch.launch_by < now {
                self.refuse(run, &Refusal::Late { millis: (now - launch.launch_by) / 1_000 });
            } else if launch.kill_at.is_some_and(|kill_at| kill_at.saturating_sub(launch.stop_grace) <= now) {
                self.refuse(run, &Refusal::LeaseEnding);
            } else if self.journal.room() == 0 {
                self.refuse(run, &Refusal::JournalFull);
            } else {
                match ProgramPipes::create(launch.separate_stderr) {
                    Ok((pipes, program_ends)) => {
                        fail::point("keeper-before-intent");
                        self.journal.add(&JournalEntry::Intent { run, output: Some(pipes.output.id()) });
                        launches.push(PreparedLaunch { launch, pipes: Rc::new(pipes), program_ends });
                    }
                    Err(error) => {
                        let why = SpawnError::OutputPipe(error.into()).to_string();
                        self.refuse(run, &Refusal::NotStarted(why));
                    }
                }
            }
        }
        launches
    }

    /// Writes the journal to disk. Programs whose launch is not on disk are not started.
    fn commit(&mut self, launches: Vec<PreparedLaunch>) -> Vec<PreparedLaunch> {
        let Err(error) = self.journal.commit() else { return launches };
        // Ends that could not be written are reported all the same: the daemon stores them.
        log::line(&format!("cannot write the journal: {error}"));
        self.journal_error = Some(error.to_string());
        for PreparedLaunch { launch, .. } in launches {
            self.journal.add(&JournalEntry::Refused(launch.run));
            self.refuse(launch.run, &Refusal::JournalFailed(error.to_string()));
        }
        Vec::new()
    }

    fn launch(&mut self, prepared: PreparedLaunch, events: &Events) {
        fail::point("keeper-after-intent");
        let PreparedLaunch { launch, pipes, program_ends } = prepared;
        // The flush may have taken long. The daemon counts a launch that is later than this as not started.
        let now = clock::now();
        if launch.launch_by < now {
            let refusal = Refusal::Late { millis: (now - launch.launch_by) / 1_000 };
            return self.undo_launch(launch.run, refusal.to_string());
        }
        match self.spawn(&launch, &pipes, &program_ends) {
            Ok(spawned) => self.began(&launch, spawned, pipes, events),
            Err(error) => self.undo_launch(launch.run, error.to_string()),
        }
    }

    fn spawn(
        &mut self,
        launch: &ProgramLaunch,
        pipes: &ProgramPipes,
        program_ends: &ProgramEnds,
    ) -> Result<SpawnedProcess, SpawnError> {
        let run = launch.run;
        drop(self.outputs.create(run).map_err(|error| SpawnError::Output(error.into()))?);
        if let Some(stderr) = &pipes.stderr {
            self.outputs.create_stderr_index(run, stderr.id()).map_err(|error| SpawnError::Output(error.into()))?;
        }
        let cgroup = if needs_stage(launch) { self.cgroups.create(run, &launch.limits)? } else { None };
        self.spawner.spawn(launch, program_ends, cgroup)
    }

    fn began(&mut self, launch: &ProgramLaunch, spawned: SpawnedProcess, pipes: Rc<ProgramPipes>, events: &Events) {
        let run = launch.run;
        let SpawnedProcess { pid, start, .. } = spawned;
        tracing::debug!(event = "program_started", run = %run, pid, "started process {pid} for run {run}");
        fail::point("keeper-after-spawn");
        self.journal.add(&JournalEntry::Spawned { run, pid, start });
        // At once: it is the only trace of a program whose environment and files cannot be read.
        self.flush_journal();
        match &spawned.report {
            Some(report) => {
                if let Err(error) = events.watch(report, Source::StageReport(pid)) {
                    log::line(&format!("cannot watch the start of process {pid}: {error}"));
                }
            }
            None => self.report_started(run, pid),
        }
        let ending = Ending::new(launch.stop_signal, launch.stop_grace, launch.kill_at);
        let cgroup = if needs_stage(launch) { self.cgroups.group_of(run) } else { None };
        let tree = ProcessTree::new(run, Some((pid, start)), Some(pipes.output.id()), cgroup);
        let output = OutputSize::new(launch.output);
        self.table.begin(run, RunningProgram::new(spawned, tree, output, pipes, ending));
    }

    /// A launch that is in the journal did not become a program.
    fn undo_launch(&mut self, run: RunKey, why: String) {
        self.journal.add(&JournalEntry::Refused(run));
        self.outputs.remove(run);
        self.cgroups.remove(run);
        self.refuse(run, &Refusal::NotStarted(why));
    }

    fn report_started(&mut self, run: RunKey, pid: i32) {
        let pid = u32::try_from(pid).expect("a process is positive");
        self.news.push(FromKeeper::Started { run, pid });
    }

    /// Reports that a run was not started, and remembers it.
    fn refuse(&mut self, run: RunKey, refusal: &Refusal) {
        // A program's name may be as long as a message; its beginning is enough.
        let why = truncated(&refusal.to_string(), REASON_MAX).to_owned();
        self.table.refuse(run, &why);
        self.news.push(FromKeeper::Refused { run, why });
    }
}

/// From a program that runs to its end.
impl Supervisor {
    /// Requests the end of a program.
    pub(super) fn stop(&mut self, run: RunKey, signal: i32, grace: u64) {
        self.withdraw(run, &Refusal::Stopped);
        // SIGKILL needs no grace period.
        let grace = if signal == Signal::KILL.as_raw() { 0 } else { grace };
        if let Some(program) = self.table.running_mut(run) {
            program.ending.stop(signal, grace, clock::now());
            self.table.reschedule(run);
        }
    }

    /// Sends a program a signal. SIGKILL ends everything that belongs to it.
    pub(super) fn signal(&mut self, run: RunKey, signal: i32) {
        if signal != Signal::KILL.as_raw() {
            return signal_group(self.table.running(run).and_then(RunningProgram::group), signal);
        }
        self.withdraw(run, &Refusal::Stopped);
        if let Some(program) = self.table.running_mut(run) {
            program.ending.kill();
            self.table.reschedule(run);
        }
    }

    /// Extends a lease.
    pub(super) fn extend(&mut self, run: RunKey, kill_at: u64) {
        self.queue.extend(run, kill_at);
        if let Some(program) = self.table.running_mut(run) {
            program.ending.extend(kill_at, clock::now());
            self.table.reschedule(run);
        }
    }

    /// Requests the end of all programs, each with the signal and the grace period of its job.
    pub(super) fn stop_all(&mut self) {
        for run in self.queue.clear() {
            self.refuse(run, &Refusal::KeeperEnding);
        }
        let all: Vec<_> = self.table.all_running().map(|(run, program)| (run, program.ending.terms())).collect();
        all.into_iter().for_each(|(run, (signal, grace))| self.stop(run, signal, grace));
    }

    /// The daemon has stored the result of a run.
    pub(super) fn forget(&mut self, run: RunKey) {
        fail::point("keeper-before-forget");
        if self.table.forget(run) {
            self.journal.add(&JournalEntry::Forgotten(run));
            self.outputs.remove_later(run);
            self.cgroups.remove(run);
        }
    }

    /// Waits for children that have ended. Everything that descends from the keeper becomes its child in the end:
    /// programs, and orphans, which are only waited for.
    pub(super) fn reap(&mut self, has_signal: bool) {
        if !has_signal && !self.has_unreaped {
            return;
        }
        for _ in 0..REAPS_MAX {
            let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) else {
                self.has_unreaped = false;
                return;
            };
            let pid = pid.as_raw_nonzero().get();
            if self.collector.child_ended(pid) {
                continue;
            }
            if let Some(run) = self.table.of_pid(pid)
                && let Some(exit) = exit_of(status)
            {
                self.first_process_ended(run, pid, exit);
            }
        }
        // There may be more, and their signal was read already.
        self.has_unreaped = true;
    }

    fn first_process_ended(&mut self, run: RunKey, pid: i32, exit: ProcessExit) {
        // A second stage that failed reported that before it ended, and never was the program.
        self.receive_stage_report(pid);
        let now = clock::now();
        tracing::debug!(event = "program_ended", run = %run, pid, "process {pid} of run {run} ended: {exit:?}");
        self.table.release(pid);
        let Some(program) = self.table.running_mut(run) else { return };
        if program.ending.ended(exit, now) {
            self.finish(run, exit);
        } else {
            self.table.reschedule(run);
        }
    }

    /// Receives the outcome of a start through a second stage.
    pub(super) fn receive_stage_report(&mut self, pid: i32) {
        let Some(run) = self.table.of_pid(pid) else { return };
        let Some(program) = self.table.running_mut(run) else { return };
        match read_stage_report(program) {
            StageReport::Pending => {}
            StageReport::Started => {
                program.report = None;
                self.report_started(run, pid);
            }
            StageReport::Failed(why) => {
                self.table.remove(run);
                self.undo_launch(run, why);
            }
        }
    }

    /// Does what is due for programs that are to end.
    pub(super) fn end_due(&mut self) {
        for (run, exit) in self.scan.end_due(&mut self.table, &self.cgroups) {
            self.finish(run, exit);
        }
    }

    /// Takes back a launch that is not in the journal yet.
    fn withdraw(&mut self, run: RunKey, refusal: &Refusal) {
        if self.queue.remove(run) {
            self.refuse(run, refusal);
        }
    }

    /// A run is over, with everything that belongs to it.
    fn finish(&mut self, run: RunKey, exit: ProcessExit) {
        let Some(mut program) = self.table.remove(run) else { return };
        self.drain(run, &program.pipes);
        self.outputs.update(run, &mut program.output);
        let output = program.output.bytes();
        self.cgroups.remove(run);
        fail::point("keeper-before-exit-written");
        let end = ProgramEnd { exit, output, by_lease: program.ending.is_by_lease(exit) };
        self.journal.add(&JournalEntry::Exit { run, end });
        self.table.finish(run, FinishedProgram::Ended(end));
        self.news.push(FromKeeper::Ended { run, end });
    }
}

/// What is done at the end of a turn.
impl Supervisor {
    /// Stores what a program has written before its end. If a background process still has the pipe, what it writes
    /// later does not belong to the run.
    fn drain(&mut self, run: RunKey, pipes: &ProgramPipes) {
        match pipes.drain(self.outputs.folder(), run) {
            Ok(true) => return,
            Ok(false) => {}
            Err(lost) => log::line(&format!("cannot write the end of the output of run {run}: {}", lost.reason)),
        }
        self.outputs.mark_written(run);
        self.collector.end(run);
    }

    /// Writes to the journal what need not be on disk before it is acted upon.
    pub(super) fn flush_journal(&mut self) {
        if let Err(error) = self.journal.flush() {
            log::line(&format!("cannot write the journal: {error}"));
        }
    }

    /// Maintains output files and the journal.
    pub(super) fn maintain(&mut self, is_busy: bool) {
        let now = clock::now();
        if self.collector.must_restart(now) {
            let running: Vec<_> =
                self.table.all_running().map(|(run, program)| (run, Rc::clone(&program.pipes))).collect();
            self.collector.restart(&running, &self.spawner, now);
        }
        self.collector.send(now);
        self.output_schedule.poll(&self.outputs, &mut self.table, now);
        self.output_schedule.clear(&mut self.outputs, is_busy, now);
        if self.journal.room() < BATCH as u64 {
            self.journal.rotate(&self.table, now);
        }
    }
}

fn exit_of(status: WaitStatus) -> Option<ProcessExit> {
    status.exit_status().map(ProcessExit::Code).or_else(|| status.terminating_signal().map(ProcessExit::Signal))
}

/// Reads the pipe of a second stage: that it is ready, and then nothing more or why it could not become the program.
fn read_stage_report(program: &mut RunningProgram) -> StageReport {
    let Some(report) = &program.report else { return StageReport::Pending };
    let mut buffer = [0; REPORT_MAX];
    loop {
        let mut text = match rustix::io::read(report, &mut buffer) {
            // A stage that was stopped before it became the program ends as the program would.
            Ok(0) if program.is_prepared || program.ending.is_ending() => return StageReport::Started,
            Ok(0) => return StageReport::Failed(Refusal::StageKilled.to_string()),
            Ok(length) => &buffer[..length],
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return StageReport::Pending,
            Err(_) => return StageReport::Started,
        };
        if let Some(rest) = text.strip_prefix(&[READY]) {
            program.is_prepared = true;
            text = rest;
        }
        if !text.is_empty() {
            return StageReport::Failed(String::from_utf8_lossy(text).into_owned());
        }
    }
}
