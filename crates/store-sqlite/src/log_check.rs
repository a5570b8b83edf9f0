//! Checks the write-ahead log before SQLite reads it. SQLite ends the log at the first frame that is not valid, because
//! after a crash the last commit may be incomplete. If a valid commit follows such a frame, the log is damaged: what was
//! confirmed would be gone without a word, and runs could start again.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes of the header of the log, and of a frame.
const HEADER: usize = 32;
const FRAME: usize = 24;

/// The first bytes of a log, whose last bit says that its checksums are computed on big-endian words.
const MAGIC: u32 = 0x377f_0682;

/// Sizes of pages that SQLite can have.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 512..=65_536;

/// The path of the log of a database.
pub(crate) fn log_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Whether the log of a database has lost commits that were confirmed. A log that does not exist has not.
pub(crate) fn is_damaged(database: &Path) -> io::Result<bool> {
    match File::open(log_path(database)) {
        // A shorter file has no frame.
        Ok(file) if file.metadata()?.len() > HEADER as u64 => has_lost_commits(BufReader::with_capacity(1 << 20, file)),
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn has_lost_commits(mut log: impl Read) -> io::Result<bool> {
    let mut header = [0; HEADER];
    log.read_exact(&mut header)?;
    let word = |at: usize| read_word(&header, at, true);
    let (magic, page_size, salts) = (word(0), word(8), (word(16), word(20)));
    let is_big_endian = magic & 1 == 1;
    let mut sum = Checksum { is_big_endian, words: (0, 0) };
    sum.add(&header[..24]);
    if magic & !1 != MAGIC || !PAGE_SIZES.contains(&page_size) || sum.words != (word(24), word(28)) {
        return Ok(true);
    }
    let mut frame = vec![0; FRAME + usize::try_from(page_size).unwrap_or(0)];
    let (mut is_valid, mut later_commits) = (true, 0);
    while read_whole(&mut log, &mut frame)? {
        let word = |at: usize| read_word(&frame, at, true);
        // A frame with other salts is from before the log was restarted.
        let is_of_this_log = (word(8), word(12)) == salts;
        if is_valid {
            sum.add(&frame[..8]);
            sum.add(&frame[FRAME..]);
            is_valid = is_of_this_log && sum.words == (word(16), word(20));
        }
        if !is_valid && is_of_this_log && word(4) != 0 {
            later_commits += 1;
        }
    }
    // The last commit may be incomplete: its pages reach the disk in any order. A commit before it was confirmed.
    Ok(later_commits > 1)
}

/// Reads a whole frame. Returns false at the end of the log.
fn read_whole(log: &mut impl Read, frame: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(frame) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn read_word(bytes: &[u8], at: usize, is_big_endian: bool) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).unwrap_or_default();
    if is_big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
}

/// The checksum of the log, which continues from frame to frame.
struct Checksum {
    is_big_endian: bool,
    words: (u32, u32),
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        let (mut one, mut other) = self.words;
        for pair in bytes.chunks_exact(8) {
            one = one.wrapping_add(read_word(pair, 0, self.is_big_endian)).wrapping_add(other);
            other = other.wrapping_add(read_word(pair, 4, self.is_big_endian)).wrapping_add(one);
        }
        self.words = (one, other);
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// A log with some commits.
    fn log() -> Vec<u8> {
        let path = std::env::temp_dir().join(format!("cronhold-log-check-{}.db", std::process::id()));
        let connection = Connection::open(&path).expect("a database");
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).expect("a log");
        connection.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1);").expect("two commits");
        connection.execute_batch("INSERT INTO t VALUES (2); INSERT INTO t VALUES (3);").expect("two commits");
        let log = std::fs::read(log_path(&path)).expect("a log");
        drop(connection);
        let _ = std::fs::remove_file(path);
        log
    }

    #[test]
    fn damage_before_a_confirmed_commit_is_found() {
        let log = log();
        let check = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut log = log.clone();
            change(&mut log);
            has_lost_commits(&log[..]).expect("readable")
        };
        assert!(!check(&|_| ()));
        assert!(check(&|log| log[0] ^= 1), "the header");
        assert!(check(&|log| log.fill(0x5a)), "garbage");
        assert!(check(&|log| log[HEADER + FRAME + 100] ^= 1), "the first page");
        assert!(check(&|log| log[HEADER + 17] ^= 1), "the first checksum");
        // A crash can leave the last commit incomplete.
        assert!(!check(&|log| log.truncate(log.len() - 10)));
        assert!(!check(&|log| {
            let last = log.len() - 100;
            log[last] ^= 1;
        }));
        assert!(!check(&|log| log.truncate(HEADER)));
    }
}
