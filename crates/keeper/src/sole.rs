//! Checks whether a file is open anywhere else. Only the kernel knows: a background process of a program may hold its
//! output open.

use std::os::fd::{AsFd, AsRawFd};

use nix::libc::{F_SETLEASE, F_UNLCK, F_WRLCK, SIGURG, c_int, fcntl};

/// The command that sets the signal of a lease; `libc` does not name it. It has the same value on every architecture.
const F_SETSIG: c_int = 10;

/// Whether the file is open only here. Returns `false` if the kernel or the file system cannot tell.
pub(crate) fn is_sole(file: impl AsFd) -> bool {
    // If another process opens the file while there is a lease, the kernel sends a signal. SIGURG is ignored by
    // default; the usual signal would end the keeper.
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
    use crate::scratch_dir::ScratchDir;

    #[test]
    fn file_that_is_open_elsewhere_is_detected() {
        let scratch = ScratchDir::new();
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
        // For the kernel both are one open file.
        let same = file.try_clone().unwrap();
        assert!(is_sole(&file) && is_sole(&same));
        drop(same);
        // No lease is left that would make an open wait.
        assert!(File::open(&path).is_ok());
    }
}
