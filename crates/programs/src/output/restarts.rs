//! Where the output file of a run begins in the stored output. That is the start, unless the program truncated its
//! file: then the file begins again after the truncation notice. The stored bytes do not show where that is, because a
//! program may print the notice itself, so the offset is kept in a small file beside them.
//!
//! The offset is written before the bytes that it describes are appended to the store. After a crash, the length of the
//! stored output shows whether the append took place, and thus which of the two recorded offsets applies.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cronhold_core::RunId;

/// The folder in the data directory. It exists once a program has truncated its output.
const FOLDER: &str = "output-restarts";
/// Suffix of a file until it is complete.
const PARTIAL: &str = "new";

/// The recorded offsets of all runs whose programs truncated their output.
#[derive(Debug)]
pub(super) struct RestartLog {
    folder: PathBuf,
    restarts: BTreeMap<RunId, Restart>,
}

/// Offsets in the stored output at which the output file begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Restart {
    /// Before the last truncation.
    pub(super) previous: u64,
    /// After the last truncation. It holds once the stored output is at least this long.
    pub(super) latest: u64,
}

impl Restart {
    /// The offset that holds for a stored output of this length.
    pub(super) fn base(self, stored: u64) -> u64 {
        [self.latest, self.previous].into_iter().find(|base| *base <= stored).unwrap_or(0)
    }
}

impl RestartLog {
    /// Reads what earlier daemons recorded in this data directory. A file that cannot be read counts as absent: the
    /// output of its run is then stored once more from the start of its file.
    pub(super) fn open(data: &Path) -> Self {
        let folder = data.join(FOLDER);
        let mut restarts = BTreeMap::new();
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let run = entry.file_name().to_str().and_then(|name| RunId::parse(name).ok());
            let restart = fs::read_to_string(entry.path()).ok().and_then(|text| parse(&text));
            match (run, restart) {
                (Some(run), Some(restart)) => drop(restarts.insert(run, restart)),
                _ => drop(fs::remove_file(entry.path())),
            }
        }
        Self { folder, restarts }
    }

    /// What is recorded of a run.
    pub(super) fn get(&self, run: RunId) -> Restart {
        self.restarts.get(&run).copied().unwrap_or_default()
    }

    /// Records that the next append moves the beginning of a run's file from one offset to another.
    pub(super) fn record(&mut self, run: RunId, previous: u64, latest: u64) -> io::Result<()> {
        self.put(run, Restart { previous, latest })
    }

    /// The stored output shows that the file begins at `base`. An append that was recorded and did not take place is
    /// withdrawn, because the stored output may later grow past its offset.
    pub(super) fn confirm(&mut self, run: RunId, base: u64) -> io::Result<()> {
        if self.get(run).latest == base {
            return Ok(());
        }
        self.put(run, Restart { previous: base, latest: base })
    }

    /// Deletes the records of runs that are not needed any more.
    pub(super) fn retain(&mut self, is_needed: impl Fn(RunId) -> bool) {
        let folder = &self.folder;
        self.restarts.retain(|run, _| {
            let stays = is_needed(*run);
            if !stays {
                // A file that cannot be deleted now is deleted by the next daemon.
                let _ = fs::remove_file(folder.join(run.to_string()));
            }
            stays
        });
    }

    fn put(&mut self, run: RunId, restart: Restart) -> io::Result<()> {
        self.restarts.insert(run, restart);
        fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(run.to_string());
        let partial = path.with_extension(PARTIAL);
        let mut file = File::create(&partial)?;
        file.write_all(format!("{} {}\n", restart.previous, restart.latest).as_bytes())?;
        file.sync_data()?;
        fs::rename(partial, path)
    }
}

fn parse(text: &str) -> Option<Restart> {
    let (previous, latest) = text.strip_suffix('\n')?.split_once(' ')?;
    Some(Restart { previous: previous.parse().ok()?, latest: latest.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::Instant;

    use super::*;

    #[test]
    fn restart_counts_once_its_append_is_stored() {
        let restart = Restart { previous: 10, latest: 50 };
        for (stored, base) in [(60, 50), (50, 50), (49, 10), (10, 10), (9, 0)] {
            assert_eq!(restart.base(stored), base, "{stored} bytes stored");
        }
    }

    #[test]
    fn records_survive_reopening_until_they_are_not_needed() {
        let data = std::env::temp_dir().join(format!("cronhold-restarts-{}", std::process::id()));
        let run = |number: u8| RunId::from_random(Instant::EPOCH, [number; 10]);
        let mut log = RestartLog::open(&data);
        log.record(run(1), 0, 20).expect("written");
        log.record(run(1), 20, 90).expect("written");
        log.record(run(2), 0, 7).expect("written");
        fs::write(data.join(FOLDER).join(run(3).to_string()), "12").expect("written");
        let mut log = RestartLog::open(&data);
        assert_eq!([1, 2, 3].map(|number| log.get(run(number)).latest), [90, 7, 0], "a torn record counts as none");
        // The append of the last restart did not take place, and the output grows past its offset.
        log.confirm(run(1), 20).expect("written");
        log.retain(|known| known == run(1));
        let log = RestartLog::open(&data);
        assert_eq!((log.get(run(1)).base(500), log.restarts.len()), (20, 1));
        fs::remove_dir_all(&data).expect("there");
    }
}
