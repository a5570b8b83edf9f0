//! Sets how urgently the disk serves a process.

use std::io;

use nix::errno::Errno;
use nix::libc::{SYS_ioprio_set, c_long, syscall};

/// The target is one process; `libc` does not name it. It has the same value on every architecture.
const WHO_PROCESS: c_long = 1;
/// The calling process.
const SELF: c_long = 0;

/// Sets the priority of this process, as the kernel writes it: the class in the upper bits, the level below them.
#[expect(unsafe_code, reason = "no crate that we use knows this call; it takes three numbers and no pointer")]
pub(super) fn set(priority: u16) -> io::Result<()> {
    // SAFETY: the kernel reads nothing but the numbers.
    let result = unsafe { syscall(SYS_ioprio_set, WHO_PROCESS, SELF, c_long::from(priority)) };
    if result == 0 { Ok(()) } else { Err(Errno::last().into()) }
}
