//! The thread that sends requests. Workers are blocking code on threads of their own, and may drop a request at any time,
//! so requests run on an executor of their own.

use std::io;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// An executor on a thread, which ends when this is dropped. Requests that are pending then are dropped.
#[derive(Debug)]
pub(super) struct RequestRuntime {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RequestRuntime {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("task requests".to_owned()).spawn(move || {
            // Both ends of the channel mean the same.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Runs a future on the thread. It goes on if the returned one is dropped, which is `None` if the thread has ended.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send + 'static {
        let spawned = self.handle.spawn(future);
        async move { spawned.await.ok() }
    }

    pub(super) const fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for RequestRuntime {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed to standard error already.
            let _ = thread.join();
        }
    }
}
