//! Plug-ins of this machine: programs and conditions that write messages instead of text. The keeper moves what a plug-in
//! writes to a file like that of any program, so no message is lost while the daemon is away. The daemon reads that file
//! and writes a second one, the *spool*, with the text that the messages carry; the spool is what is stored as the
//! output of the run. Spools are in the data directory, with how far each file was read, so that a daemon that is
//! killed continues where it was.

mod file;
mod spool;

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use cronhold_core::RunId;
use cronhold_core::plugin::{MessageReader, PluginKind, PluginProgress};
use cronhold_core::record::ResolvedProgram;
use cronhold_engine::LaunchRequest;
use cronhold_keeper::OutputLimits;
use cronhold_schedule::Span;
use cronhold_store::lock_mutex;

use self::spool::{PluginSpool, SpoolState};

/// The folder in the data directory. It exists once a plug-in was started.
const FOLDER: &str = "plugins";
/// Time between two reports of the progress of a run. Each of them is a commit.
const PROGRESS_EVERY: Span = Span::from_secs(5);
/// How much of the messages of a condition is kept until they are read.
pub(crate) const CONDITION_KEPT: OutputLimits = OutputLimits { head: 64 * 1024, tail: 1 << 20 };

/// The plug-ins whose messages this daemon reads.
#[derive(Debug)]
pub(crate) struct PluginSpools {
    folder: PathBuf,
    spools: Mutex<BTreeMap<RunId, Arc<Mutex<SpoolEntry>>>>,
}

/// The spool of a run, and what was reported of it.
#[derive(Debug)]
struct SpoolEntry {
    spool: PluginSpool,
    /// The last progress that was reported, and when.
    reported: Option<(Span, PluginProgress)>,
}

impl PluginSpools {
    /// Finds the spools of earlier daemons in this data directory. One whose state cannot be read is removed.
    pub(crate) fn open(data: &Path) -> Self {
        let folder = data.join(FOLDER);
        let found = PluginSpool::open_all(&folder).into_iter().map(|(run, spool)| {
            let entry = SpoolEntry { spool, reported: None };
            (run, Arc::new(Mutex::new(entry)))
        });
        let spools = Mutex::new(found.collect());
        Self { folder, spools }
    }

    /// Prepares to read the messages of a launch, if it is that of a plug-in. This happens before the keeper gets the
    /// launch, so that every later daemon knows that the run has messages.
    pub(crate) fn prepare(&self, request: &LaunchRequest, limits: OutputLimits) -> io::Result<()> {
        let Some(ResolvedProgram::Process(process)) = &request.run.work else { return Ok(()) };
        let Some(kind) = process.plugin else { return Ok(()) };
        let run = request.run.id;
        if self.contains(run) {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let state = SpoolState::new(kind, limits, process.separate_stderr);
        let entry = SpoolEntry { spool: PluginSpool::create(&self.folder, run, state)?, reported: None };
        lock_mutex(&self.spools).insert(run, Arc::new(Mutex::new(entry)));
        Ok(())
    }

    /// Whether a run has messages.
    pub(crate) fn contains(&self, run: RunId) -> bool {
        lock_mutex(&self.spools).contains_key(&run)
    }

    /// The file with the text of a run; `None` if it has no messages.
    pub(crate) fn output(&self, run: RunId) -> Option<PathBuf> {
        self.with(run, |entry| entry.spool.output().to_owned())
    }

    /// Which parts of the text are standard error; `None` if its job does not tell the streams apart.
    pub(crate) fn stderr(&self, run: RunId) -> Option<Vec<(u64, u64)>> {
        self.with(run, |entry| entry.spool.stderr().map(<[_]>::to_vec)).flatten()
    }

    /// Reads the messages that a running plug-in has written meanwhile to `messages`.
    pub(crate) fn read(&self, run: RunId, messages: &Path) -> io::Result<()> {
        self.with(run, |entry| entry.spool.read(messages)).unwrap_or(Ok(()))
    }

    /// Reads all messages of a plug-in that has ended; `total` is the length of the file, if it is known. Returns the
    /// length of its text; `None` if the run has no messages.
    pub(crate) fn finish(&self, run: RunId, messages: &Path, total: Option<u64>) -> Option<io::Result<u64>> {
        self.with(run, |entry| entry.spool.finish(messages, total))
    }

    /// What was read of the messages of a run; `None` if it has none.
    pub(crate) fn messages(&self, run: RunId) -> Option<MessageReader> {
        self.with(run, |entry| entry.spool.messages().clone())
    }

    /// The progress of a program that is to be reported now.
    pub(crate) fn take_progress(&self, run: RunId, uptime: Span) -> Option<PluginProgress> {
        self.with(run, |entry| entry.take_progress(uptime)).flatten()
    }

    /// Removes the spools of runs that are not needed any more.
    pub(crate) fn retain(&self, is_needed: impl Fn(RunId) -> bool) {
        lock_mutex(&self.spools).retain(|run, entry| {
            let stays = is_needed(*run);
            if !stays {
                lock_mutex(entry).spool.remove();
            }
            stays
        });
    }

    fn with<T>(&self, run: RunId, call: impl FnOnce(&mut SpoolEntry) -> T) -> Option<T> {
        let entry = lock_mutex(&self.spools).get(&run).cloned()?;
        let mut entry = lock_mutex(&entry);
        Some(call(&mut entry))
    }
}

impl SpoolEntry {
    fn take_progress(&mut self, uptime: Span) -> Option<PluginProgress> {
        let messages = self.spool.messages();
        let progress = messages.progress().filter(|_| messages.kind() == PluginKind::Program)?;
        if let Some((at, before)) = &self.reported
            && (before == progress || uptime < at.plus(PROGRESS_EVERY))
        {
            return None;
        }
        let progress = progress.clone();
        self.reported = Some((uptime, progress.clone()));
        Some(progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_reported_at_intervals_and_only_if_it_has_changed() {
        let folder = std::env::temp_dir().join(format!("cronhold-progress-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let run = RunId::from_key(cronhold_schedule::Instant::EPOCH, "r");
        let messages = folder.join("messages");
        let state = SpoolState::new(PluginKind::Program, OutputLimits::DEFAULT, false);
        let mut entry =
            SpoolEntry { spool: PluginSpool::create(&folder, run, state).expect("written"), reported: None };
        let write = |entry: &mut SpoolEntry, percent: u8| {
            let before = std::fs::read_to_string(&messages).unwrap_or_default();
            let line = format!("{before}{{\"type\":\"progress\",\"percent\":{percent}}}\n");
            std::fs::write(&messages, line).expect("written");
            entry.spool.read(&messages).expect("read");
        };
        let mut shown = Vec::new();
        for (seconds, percent) in [(1, 10), (2, 20), (5, 30), (6, 40), (12, 40), (13, 50)] {
            write(&mut entry, percent);
            let taken = entry.take_progress(Span::from_secs(seconds));
            shown.push(taken.and_then(|progress| progress.percent));
        }
        std::fs::remove_dir_all(&folder).expect("there");
        assert_eq!(shown, [Some(10), None, None, Some(40), None, Some(50)]);
    }
}
