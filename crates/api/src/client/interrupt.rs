//! Someone who waits for something long may want to wait no more. What is waited for goes on; only what is said about it
//! is up to whoever waits.

use tokio::runtime::Builder;

use super::Client;

impl Client {
    /// Does something when the process is interrupted from the keyboard. Until then nothing else happens; where this
    /// cannot be had, an interrupt ends the process as usual.
    pub fn on_interrupt(then: impl FnOnce() + Send + 'static) {
        // The thread ends with the process, which has nobody else to wait for it.
        std::thread::spawn(move || {
            let Ok(runtime) = Builder::new_current_thread().enable_io().build() else { return };
            if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
                then();
            }
        });
    }
}
