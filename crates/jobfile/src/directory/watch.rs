//! Watches folders for changes with inotify. It reports only that something has changed: a scan finds out what, because
//! notifications can be lost and some file systems send none.

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// Size of the buffer for notifications, in bytes.
const HINTS_BYTES: usize = 16 * 1024;

/// Events that change a folder or a file in it. Reading is not among them, because the scan itself reads.
const CHANGES: WatchFlags = WatchFlags::from_bits_retain(
    WatchFlags::ATTRIB.bits()
        | WatchFlags::CLOSE_WRITE.bits()
        | WatchFlags::CREATE.bits()
        | WatchFlags::DELETE.bits()
        | WatchFlags::DELETE_SELF.bits()
        | WatchFlags::MODIFY.bits()
        | WatchFlags::MOVE.bits()
        | WatchFlags::MOVE_SELF.bits()
        | WatchFlags::ONLYDIR.bits(),
);

/// A watch on a set of folders.
#[derive(Debug)]
pub struct DirectoryWatch {
    hints: OwnedFd,
    /// The system's ids of the folders.
    folders: BTreeSet<i32>,
}

/// The result of watching a set of folders.
#[derive(Debug)]
pub struct WatchCoverage {
    /// Whether some of the folders were not watched before. Changes in them until now were not reported.
    pub has_new: bool,
    /// Why some of them cannot be watched.
    pub trouble: Option<io::Error>,
}

impl DirectoryWatch {
    /// A watch on no folder.
    pub fn new() -> io::Result<Self> {
        let hints = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self { hints, folders: BTreeSet::new() })
    }

    /// Watches exactly these folders. A folder that was replaced by another one of the same name counts as new.
    pub fn cover<'a>(&mut self, folders: impl IntoIterator<Item = &'a Path>) -> WatchCoverage {
        let mut trouble = None;
        let mut watched = BTreeSet::new();
        for folder in folders {
            match inotify::add_watch(&self.hints, folder, CHANGES) {
                Ok(number) => drop(watched.insert(number)),
                // It may have been removed since it was seen, which its parent folder reports.
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => trouble = Some(error.into()),
            }
        }
        for number in self.folders.difference(&watched) {
            // The system itself removes the watch of a folder that is gone.
            let _ = inotify::remove_watch(&self.hints, *number);
        }
        let has_new = !watched.is_subset(&self.folders);
        self.folders = watched;
        WatchCoverage { has_new, trouble }
    }

    /// Takes all pending notifications without waiting. Returns whether there were any.
    pub fn take(&self) -> bool {
        let mut room = [MaybeUninit::uninit(); HINTS_BYTES];
        let mut hints = Reader::new(&self.hints, &mut room);
        let mut has_any = false;
        while hints.next().is_ok() {
            has_any = true;
        }
        has_any
    }
}

impl AsRawFd for DirectoryWatch {
    fn as_raw_fd(&self) -> RawFd {
        self.hints.as_raw_fd()
    }
}
