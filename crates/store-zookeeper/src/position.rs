//! The last known position of the store: its epoch, which is chosen when it is created, the last transaction, and how often
//! the clock and the writers were set. A process remembers it, also on disk, so that it notices an ensemble that was
//! restored from an old copy or recreated. The transaction is not enough: members that start from a copy elect a leader,
//! whose transactions have higher numbers than all before.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use cronhold_store::{Fault, lock_mutex};
use tokio::time::Instant;

use crate::wire::ZnodeStat;

/// Pause between two writes of the file. A transaction that is older than the real one may miss a loss of the last
/// second, but never reports a false one.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// The file has an epoch and three numbers; a longer one is invalid.
const LENGTH_MAX: usize = 200;

/// Compares positions, and saves them.
#[derive(Debug)]
pub(crate) struct PositionTracker {
    file: Option<PathBuf>,
    state: Mutex<PositionState>,
}

#[derive(Debug, Default)]
struct PositionState {
    known: Option<EnsemblePosition>,
    saved_at: Option<Instant>,
    /// Why the store must not be used any more.
    rollback: Option<String>,
}

/// The position of a store. Data versions only grow while the store exists, and begin again after their maximum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EnsemblePosition {
    pub(crate) epoch: String,
    /// The last transaction.
    pub(crate) zxid: i64,
    /// The data version of the clock.
    pub(crate) clock: i32,
    /// The data version of the writers.
    pub(crate) writers: i32,
}

impl EnsemblePosition {
    /// What a later position lacks; `None` if it has everything.
    fn loss_in(&self, later: &Self) -> Option<String> {
        let is_before = |later: i32, known: i32| later.wrapping_sub(known) < 0;
        if self.epoch != later.epoch {
            return Some("its store was created again".to_owned());
        }
        if later.zxid < self.zxid {
            return Some(format!("its last transaction is {:#x}, and this node has seen {:#x}", later.zxid, self.zxid));
        }
        let counts = [("clock", later.clock, self.clock), ("writers", later.writers, self.writers)];
        let (name, later, known) = counts.into_iter().find(|(_, later, known)| is_before(*later, *known))?;
        Some(format!("its znode `{name}` has version {later}, and this node has seen {known}"))
    }

    fn advance(&mut self, later: &Self) {
        let latest = |known: i32, later: i32| if later.wrapping_sub(known) > 0 { later } else { known };
        self.zxid = self.zxid.max(later.zxid);
        self.clock = latest(self.clock, later.clock);
        self.writers = latest(self.writers, later.writers);
    }
}

impl PositionTracker {
    /// Reads the file, which does not need to exist.
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        let known = file.as_deref().and_then(read);
        Self { file, state: Mutex::new(PositionState { known, ..PositionState::default() }) }
    }

    /// Whether this process, or an earlier one, has used a store in this ensemble.
    pub(crate) fn has_known_store(&self) -> bool {
        lock_mutex(&self.state).known.is_some()
    }

    /// Fails if the store was found to be rolled back.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        match &lock_mutex(&self.state).rollback {
            Some(why) => Err(Fault::Permanent(why.clone())),
            None => Ok(()),
        }
    }

    /// The last known position; `None` before the first session.
    pub(crate) fn known(&self) -> Option<EnsemblePosition> {
        lock_mutex(&self.state).known.clone()
    }

    /// Compares a position with the one that was known when it was requested. Fails if it is before it, and from then on.
    pub(crate) fn verify(
        &self,
        servers: &str,
        before: Option<&EnsemblePosition>,
        found: &EnsemblePosition,
    ) -> Result<(), Fault> {
        self.check()?;
        match before.and_then(|before| before.loss_in(found)) {
            Some(loss) => Err(self.reject(servers, &loss)),
            None => {
                self.advance(found);
                Ok(())
            }
        }
    }

    /// Compares the epoch with the known one.
    pub(crate) fn verify_epoch(&self, servers: &str, epoch: &str) -> Result<(), Fault> {
        let Some(known) = self.known() else { return Ok(()) };
        self.verify(servers, Some(&known), &EnsemblePosition { epoch: epoch.to_owned(), ..known.clone() })
    }

    /// Compares the clock, after it was set, with what was known before.
    pub(crate) fn verify_clock(
        &self,
        servers: &str,
        before: Option<EnsemblePosition>,
        stat: &ZnodeStat,
    ) -> Result<(), Fault> {
        let Some(before) = before else { return Ok(()) };
        let found = EnsemblePosition { zxid: stat.zxid, clock: stat.version, ..before.clone() };
        self.verify(servers, Some(&before), &found)
    }

    /// Compares the number of a new writer with what was known before.
    pub(crate) fn verify_writers(
        &self,
        servers: &str,
        before: Option<EnsemblePosition>,
        stat: &ZnodeStat,
    ) -> Result<(), Fault> {
        let Some(before) = before else { return Ok(()) };
        let found = EnsemblePosition { zxid: stat.zxid, writers: stat.version, ..before.clone() };
        self.verify(servers, Some(&before), &found)
    }

    /// Takes note of a position, and saves it.
    fn advance(&self, found: &EnsemblePosition) {
        let mut state = lock_mutex(&self.state);
        let known = state.known.get_or_insert_with(|| found.clone());
        known.advance(found);
        let text = format!("{} {} {} {}\n", known.epoch, known.zxid, known.clock, known.writers);
        let now = Instant::now();
        if state.saved_at.is_some_and(|at| now.duration_since(at) < SAVE_INTERVAL) {
            return;
        }
        state.saved_at = Some(now);
        if let Some(path) = self.file.clone() {
            // If this fails, the next process may not notice a rollback.
            tokio::task::spawn_blocking(move || write(&path, &text));
        }
    }

    /// Stops the use of the store, because it lacks what this process has seen.
    pub(crate) fn reject(&self, servers: &str, what: &str) -> Fault {
        let file = match &self.file {
            Some(path) => format!("delete {} and restart this node", path.display()),
            None => "restart this process".to_owned(),
        };
        let why = format!(
            "the ensemble {servers} was rolled back: {what}; runs may be lost or start twice, so this node does not use \
             it; restore the ensemble, or to continue with what it has now, {file}"
        );
        lock_mutex(&self.state).rollback.get_or_insert(why.clone());
        Fault::Permanent(why)
    }
}

fn read(path: &Path) -> Option<EnsemblePosition> {
    let text = std::fs::read_to_string(path).ok()?;
    let words: Vec<&str> = text.trim_end().split(' ').collect();
    let [epoch, zxid, clock, writers] = words.try_into().ok()?;
    let is_epoch =
        text.len() <= LENGTH_MAX && !epoch.is_empty() && epoch.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let position = EnsemblePosition {
        epoch: epoch.to_owned(),
        zxid: zxid.parse().ok()?,
        clock: clock.parse().ok()?,
        writers: writers.parse().ok()?,
    };
    is_epoch.then_some(position)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension("new");
    std::fs::write(&temporary, text)?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(epoch: &str, zxid: i64, clock: i32, writers: i32) -> EnsemblePosition {
        EnsemblePosition { epoch: epoch.to_owned(), zxid, clock, writers }
    }

    fn verify(tracker: &PositionTracker, found: &EnsemblePosition) -> Result<(), Fault> {
        tracker.verify("h:1", tracker.known().as_ref(), found)
    }

    #[test]
    fn earlier_position_and_other_epoch_stop_the_store() {
        let tracker = PositionTracker::new(None);
        assert!(!tracker.has_known_store());
        assert_eq!(verify(&tracker, &position("e", 7, 1, 1)), Ok(()));
        let before = tracker.known();
        assert_eq!(verify(&tracker, &position("e", 9, 3, 1)), Ok(()));
        let overtaken = tracker.verify("h:1", before.as_ref(), &position("e", 8, 2, 1));
        assert_eq!(overtaken, Ok(()), "it was requested before");
        assert_eq!(verify(&tracker, &position("e", 9, 3, 1)), Ok(()));
        let rejected = verify(&tracker, &position("e", 8, 3, 1)).expect_err("it went back");
        assert!(matches!(&rejected, Fault::Permanent(why) if why.contains("0x8") && why.contains("0x9")), "{rejected}");
        assert_eq!(verify(&tracker, &position("e", 12, 4, 1)), Err(rejected), "only a person can decide to continue");
        let tracker = PositionTracker::new(None);
        assert_eq!(verify(&tracker, &position("e", 7, 1, 1)), Ok(()));
        assert!(verify(&tracker, &position("f", 8, 2, 1)).is_err());
    }

    #[test]
    fn later_leader_without_known_changes_stops_the_store() {
        for (clock, writers) in [(2, 1), (3, 0), (i32::MAX, 1)] {
            let tracker = PositionTracker::new(None);
            assert_eq!(verify(&tracker, &position("e", 1 << 32, 3, 1)), Ok(()));
            let rejected = verify(&tracker, &position("e", 2 << 32, clock, writers));
            assert_eq!(rejected.is_err(), clock != i32::MAX, "{clock} {writers}");
        }
        let tracker = PositionTracker::new(None);
        assert_eq!(verify(&tracker, &position("e", 7, i32::MAX, 1)), Ok(()));
        assert_eq!(verify(&tracker, &position("e", 8, i32::MIN, 1)), Ok(()), "data versions begin again");
        assert!(verify(&tracker, &position("e", 9, i32::MAX, 1)).is_err());
    }

    #[test]
    fn saved_position_is_read_and_invalid_content_ignored() {
        let path = std::env::temp_dir().join(format!("cronhold-zookeeper-position-{}", std::process::id()));
        assert_eq!(read(&path), None);
        write(&path, "00ff 12 -7 3\n").unwrap();
        assert_eq!(read(&path), Some(position("00ff", 12, -7, 3)));
        for invalid in ["", "00ff", "00ff 1 2", "00ff x 1 2", " 12 1 2", "a b 12 1 2", "\u{0}"] {
            write(&path, invalid).unwrap();
            assert_eq!(read(&path), None, "{invalid:?}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
