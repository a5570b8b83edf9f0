//! How mutexes are locked everywhere in the workspace.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, also after another thread panicked while it held the lock.
///
/// Use it only where no code can panic half way through a change of the value: then the value is consistent, and a
/// panic of one thread does not spread to all others.
pub fn lock_mutex<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
