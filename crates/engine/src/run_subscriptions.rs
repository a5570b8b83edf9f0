//! Which channels of runs have subscribers, as the node reads it before each batch of commands. The part of the process
//! that knows the subscriptions sets it, at any time and from any thread.

use std::sync::{Arc, Mutex};

use cronhold_core::task::RunChannels;
use cronhold_store::lock_mutex;

/// The channels of runs that have subscribers. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct RunSubscriptions(Arc<Mutex<Arc<RunChannels>>>);

impl RunSubscriptions {
    /// Replaces the channels. Commands that are decided from now on publish to these.
    pub fn set(&self, channels: RunChannels) {
        let mut known = lock_mutex(&self.0);
        // Prepared claims stay valid as long as it is the same value.
        if **known != channels {
            *known = Arc::new(channels);
        }
    }

    /// The channels as they are now.
    pub fn get(&self) -> Arc<RunChannels> {
        Arc::clone(&lock_mutex(&self.0))
    }
}
