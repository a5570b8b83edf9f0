//! Where the output file of a run continues in the stored output. Both are the same, unless the program truncated its
//! file or wrote more than is kept: then the file begins again after the truncation notice, or continues after the
//! notice about omitted bytes. The stored bytes do not show where that is, because a program may print such a notice
//! itself, so the offsets are kept in a small file beside them.
//!
//! The offsets are written before the bytes that they describe are appended to the store. After a crash, the length of
//! the stored output shows whether the append took place, and thus which of the two recorded anchors applies.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cronhold_core::RunId;

/// The folder in the data directory. It exists once a program has truncated its output or written too much.
const FOLDER: &str = "output-restarts";
/// Suffix of a file until it is complete.
const PARTIAL: &str = "new";

/// The recorded anchors of runs whose file and stored output differ.
#[derive(Debug)]
pub(super) struct RestartLog {
    folder: PathBuf,
    restarts: BTreeMap<RunId, Restart>,
}

/// A position in the stored output and the offset in the file that is stored there. What follows in one follows in the
/// other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FileAnchor {
    /// The position in the stored output.
    pub(super) stored: u64,
    /// The offset in the file.
    pub(super) file: u64,
    /// Bytes of the stored output that precede the file, which the program has truncated.
    pub(super) before_file: u64,
}

/// The anchors of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Restart {
    /// Before the last append that moved the anchor.
    pub(super) previous: FileAnchor,
    /// After that append. It holds once the stored output is at least this long.
    pub(super) latest: FileAnchor,
}

impl FileAnchor {
    /// The file begins at this position of the stored output.
    pub(super) fn beginning(stored: u64) -> Self {
        Self { stored, file: 0, before_file: stored }
    }
}

impl Restart {
    /// The anchor that holds for a stored output of this length.
    pub(super) fn anchor(self, stored: u64) -> FileAnchor {
        [self.latest, self.previous].into_iter().find(|anchor| anchor.stored <= stored).unwrap_or_default()
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

    /// Records that the next append of a run moves its anchor.
    pub(super) fn record(&mut self, run: RunId, previous: FileAnchor, latest: FileAnchor) -> io::Result<()> {
        self.put(run, Restart { previous, latest })
    }

    /// The stored output shows that this anchor holds. An append that was recorded and did not take place is withdrawn,
    /// because the stored output may later grow past its position.
    pub(super) fn confirm(&mut self, run: RunId, anchor: FileAnchor) -> io::Result<()> {
        if self.get(run).latest == anchor {
            return Ok(());
        }
        self.put(run, Restart { previous: anchor, latest: anchor })
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
        file.write_all(write(restart).as_bytes())?;
        file.sync_data()?;
        fs::rename(partial, path)
    }
}

fn write(restart: Restart) -> String {
    let [previous, latest] = [restart.previous, restart.latest].map(|anchor| {
        let FileAnchor { stored, file, before_file } = anchor;
        format!("{stored} {file} {before_file}")
    });
    format!("{previous} {latest}\n")
}

/// Earlier versions wrote only the two positions at which the file begins.
fn parse(text: &str) -> Option<Restart> {
    let numbers = text.strip_suffix('\n')?.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    let anchor = |numbers: &[u64]| match *numbers {
        [stored, file, before_file] => Some(FileAnchor { stored, file, before_file }),
        [stored] => Some(FileAnchor::beginning(stored)),
        _ => None,
    };
    let (previous, latest) = numbers.split_at(numbers.len() / 2);
    Some(Restart { previous: anchor(previous)?, latest: anchor(latest)? })
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::Instant;

    use super::*;

    #[test]
    fn restart_counts_once_its_append_is_stored() {
        let [previous, latest] = [10, 50].map(FileAnchor::beginning);
        let restart = Restart { previous, latest };
        for (stored, expected) in [(60, 50), (50, 50), (49, 10), (10, 10), (9, 0)] {
            assert_eq!(restart.anchor(stored), FileAnchor::beginning(expected), "{stored} bytes stored");
        }
    }

    #[test]
    fn records_survive_reopening_until_they_are_not_needed() {
        let data = std::env::temp_dir().join(format!("cronhold-restarts-{}", std::process::id()));
        let run = |number: u8| RunId::from_random(Instant::EPOCH, [number; 10]);
        let mut log = RestartLog::open(&data);
        let [none, first, second] = [0, 20, 90].map(FileAnchor::beginning);
        let end = FileAnchor { stored: 120, file: 5_000, before_file: 20 };
        log.record(run(1), none, first).expect("written");
        log.record(run(1), first, second).expect("written");
        log.record(run(2), first, end).expect("written");
        fs::write(data.join(FOLDER).join(run(3).to_string()), "12").expect("written");
        fs::write(data.join(FOLDER).join(run(4).to_string()), "20 90\n").expect("written");
        let mut log = RestartLog::open(&data);
        let latest = [1, 2, 3, 4].map(|number| log.get(run(number)).latest);
        assert_eq!(latest, [second, end, none, second], "a torn record counts as none");
        assert_eq!(log.get(run(4)).previous, first, "the record of an earlier version is read");
        // The append of the last restart did not take place, and the output grows past its offset.
        log.confirm(run(1), first).expect("written");
        log.retain(|known| known == run(1));
        let log = RestartLog::open(&data);
        assert_eq!((log.get(run(1)).anchor(500), log.restarts.len()), (first, 1));
        fs::remove_dir_all(&data).expect("there");
    }
}
