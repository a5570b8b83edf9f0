//! A file in which a process notes how far the store had come, so that it is noticed after a restart that the store has
//! gone back meanwhile.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Between two notes. What is noted is a lower bound, so that an old note misses something and alarms nobody.
const EVERY: Duration = Duration::from_secs(1);

/// The longest note that is read: an epoch and a number.
const LENGTH_MAX: usize = 200;

/// The file.
#[derive(Debug)]
pub(crate) struct Notebook {
    path: Arc<PathBuf>,
    last: Mutex<Option<Instant>>,
}

impl Notebook {
    /// A notebook in this file, which may not be there yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path: Arc::new(path), last: Mutex::default() }
    }

    /// What was noted last: the epoch and the seq. What cannot be read counts as nothing.
    pub(crate) fn read(&self) -> Option<(String, u64)> {
        let text = std::fs::read_to_string(self.path.as_path()).ok()?;
        let (epoch, seq) = text.trim_end().split_once(' ')?;
        let is_epoch =
            text.len() <= LENGTH_MAX && !epoch.is_empty() && epoch.bytes().all(|byte| byte.is_ascii_alphanumeric());
        Some((epoch.to_owned(), seq.parse().ok()?)).filter(|_| is_epoch)
    }

    /// Notes how far the store has come, unless that was done a moment ago. A disk that does not take it harms nobody
    /// but the next process, which cannot notice then.
    pub(crate) fn note(&self, epoch: &str, seq: u64, now: Instant) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if epoch.is_empty() || last.is_some_and(|last| now.duration_since(last) < EVERY) {
            return;
        }
        *last = Some(now);
        let (path, text) = (Arc::clone(&self.path), format!("{epoch} {seq}\n"));
        tokio::task::spawn_blocking(move || write(&path, &text));
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_and_what_is_strange_is_not() {
        let path = std::env::temp_dir().join(format!("cronhold-notebook-{}", std::process::id()));
        let notebook = Notebook::new(path.clone());
        assert_eq!(notebook.read(), None);
        write(&path, "00ff 12\n").unwrap();
        assert_eq!(notebook.read(), Some(("00ff".to_owned(), 12)));
        for strange in ["", "00ff", "00ff x", " 12", "a b 12", "\u{0}"] {
            write(&path, strange).unwrap();
            assert_eq!(notebook.read(), None, "{strange:?}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
