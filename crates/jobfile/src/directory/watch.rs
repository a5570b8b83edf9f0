//! The bell that rings when something happens in folders that matter. It says no more than that: what has changed is
//! found by looking, because hints can be lost, and some file systems give none.

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// Room for hints that are taken at once.
const HINTS_BYTES: usize = 16 * 1024;

/// What changes a folder or a file in it. Reading is not among it, because we read ourselves.
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

/// A bell for a set of folders.
#[derive(Debug)]
pub struct Watch {
    hints: OwnedFd,
    /// What the system calls the folders.
    folders: BTreeSet<i32>,
}

/// What came of watching a set of folders.
#[derive(Debug)]
pub struct Covered {
    /// Whether there are folders among them that were not watched before: what happened in them until now was not heard.
    pub has_new: bool,
    /// Why some of them cannot be watched.
    pub trouble: Option<io::Error>,
}

impl Watch {
    /// A bell for nothing yet.
    pub fn new() -> io::Result<Self> {
        let hints = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self { hints, folders: BTreeSet::new() })
    }

    /// Watches these folders and no others. A folder that was replaced by another of the same name is a new one.
    pub fn cover<'a>(&mut self, folders: impl IntoIterator<Item = &'a Path>) -> Covered {
        let mut trouble = None;
        let mut watched = BTreeSet::new();
        for folder in folders {
            match inotify::add_watch(&self.hints, folder, CHANGES) {
                Ok(number) => drop(watched.insert(number)),
                // It may have gone since it was seen, which rings in the folder above.
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => trouble = Some(error.into()),
            }
        }
        for number in self.folders.difference(&watched) {
            // Of a folder that is gone the system has taken it away itself.
            let _ = inotify::remove_watch(&self.hints, *number);
        }
        let has_new = !watched.is_subset(&self.folders);
        self.folders = watched;
        Covered { has_new, trouble }
    }

    /// Takes all hints. Answers whether there were any; never waits.
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

impl AsRawFd for Watch {
    fn as_raw_fd(&self) -> RawFd {
        self.hints.as_raw_fd()
    }
}
