//! Handling of Ctrl-C while a command waits.

use tokio::runtime::Builder;

use super::DaemonClient;

impl DaemonClient {
    /// Calls a function when the process receives SIGINT. If no handler can be installed, SIGINT ends the process.
    pub fn on_interrupt(then: impl FnOnce() + Send + 'static) {
        // The thread ends with the process; nothing joins it.
        std::thread::spawn(move || {
            let Ok(runtime) = Builder::new_current_thread().enable_io().build() else { return };
            if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
                then();
            }
        });
    }
}
