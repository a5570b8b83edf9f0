//! A file with the position that a store has reached, so that a process detects after a restart that the store was
//! rolled back meanwhile.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cronhold_store::lock_mutex;
use tokio::time::Instant;

/// Pause between two writes. The saved seq is a lower bound: an old one may miss a rollback, but never reports a false
/// one.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// The file has an epoch and a number; longer ones are ignored.
const LENGTH_MAX: usize = 200;

/// The file, and when it was last written. The position is an epoch, which is new whenever the order of commits starts
/// again, and a number that grows with every commit.
#[derive(Debug)]
pub struct SeqFile {
    path: Arc<PathBuf>,
    last_save: Mutex<Option<Instant>>,
}

impl SeqFile {
    /// The file does not need to exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path: Arc::new(path), last_save: Mutex::default() }
    }

    /// The saved epoch and seq; `None` if the file does not exist or is invalid.
    pub fn read(&self) -> Option<(String, u64)> {
        let text = std::fs::read_to_string(self.path.as_path()).ok()?;
        let (epoch, seq) = text.trim_end().split_once(' ')?;
        let is_epoch =
            text.len() <= LENGTH_MAX && !epoch.is_empty() && epoch.bytes().all(|byte| byte.is_ascii_alphanumeric());
        Some((epoch.to_owned(), seq.parse().ok()?)).filter(|_| is_epoch)
    }

    /// Saves the position in the background, unless that was done a moment ago. If it fails, the next process may not
    /// detect a rollback.
    pub fn save(&self, epoch: &str, seq: u64, now: Instant) {
        let mut last = lock_mutex(&self.last_save);
        if epoch.is_empty() || last.is_some_and(|last| now.duration_since(last) < SAVE_INTERVAL) {
            return;
        }
        *last = Some(now);
        let (path, text) = (Arc::clone(&self.path), format!("{epoch} {seq}\n"));
        tokio::task::spawn_blocking(move || write(&path, &text));
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension("new");
    std::fs::write(&temporary, text)?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_position_is_read_and_invalid_content_ignored() {
        let path = std::env::temp_dir().join(format!("cronhold-seq-file-{}", std::process::id()));
        let seq_file = SeqFile::new(path.clone());
        assert_eq!(seq_file.read(), None);
        write(&path, "00ff 12\n").unwrap();
        assert_eq!(seq_file.read(), Some(("00ff".to_owned(), 12)));
        for invalid in ["", "00ff", "00ff x", " 12", "a b 12", "\u{0}"] {
            write(&path, invalid).unwrap();
            assert_eq!(seq_file.read(), None, "{invalid:?}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
