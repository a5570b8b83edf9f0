//! Whether a file is open nowhere else. Only the kernel knows: a program may have left something in the background that
//! holds its output open, under whatever name, and that no list of processes shows.

use std::os::fd::{AsFd, AsRawFd};

use nix::libc::{F_SETLEASE, F_UNLCK, F_WRLCK, SIGURG, c_int, fcntl};

/// Which signal tells of an opening; `libc` does not name it. It is the same on every processor that Rust knows Linux on.
const F_SETSIG: c_int = 10;

/// Says for sure that this is the only place where the file is open. Where the kernel or the file system cannot tell,
/// it may be open elsewhere.
pub(crate) fn is_sole(file: impl AsFd) -> bool {
    // Whoever opens it while there is a lease has us told by a signal. This one is ignored unless somebody wants it; the
    // usual one would end us.
    if !set(&file, F_SETSIG, SIGURG) {
        return false;
    }
    let is_sole = set(&file, F_SETLEASE, F_WRLCK);
    let is_free = !is_sole || set(&file, F_SETLEASE, F_UNLCK);
    set(&file, F_SETSIG, 0) && is_sole && is_free
}

#[expect(unsafe_code, reason = "no crate that we use knows leases; these three commands take a number and no pointer")]
fn set(file: impl AsFd, command: c_int, to: c_int) -> bool {
    // SAFETY: the file is open for as long as it is borrowed, and the kernel reads nothing but the number.
    unsafe { fcntl(file.as_fd().as_raw_fd(), command, to) == 0 }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn whoever_has_it_open_is_seen() {
        let scratch = Scratch::new();
        let path = scratch.path().join("file");
        fs::write(&path, "text").unwrap();
        let open = || File::options().append(true).open(&path).unwrap();
        let file = open();
        assert!(is_sole(&file));
        let other = open();
        assert!(!is_sole(&file) && !is_sole(&other));
        drop(other);
        let reader = File::open(&path).unwrap();
        assert!(!is_sole(&file));
        drop(reader);
        // Both are the same to the kernel: one opening, held twice.
        let same = file.try_clone().unwrap();
        assert!(is_sole(&file) && is_sole(&same));
        drop(same);
        // Nothing is left behind that would make somebody wait.
        assert!(File::open(&path).is_ok());
    }
}
