//! The runtime of a store. All work of a store runs on it, so that handles can be used on any executor, and requests
//! continue when their future is dropped.

use std::io;

use cronhold_store::Fault;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::faults;

/// A runtime with one thread. Dropping it ends all work, and does not wait for it.
#[derive(Debug)]
pub struct StoreRuntime {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl StoreRuntime {
    /// Starts the thread, with this name.
    pub fn start(thread_name: &str) -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name(thread_name).enable_all().build()?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// For parts of the store that start tasks themselves.
    pub fn handle(&self) -> &Handle {
        self.runtime.as_ref().expect("it is only taken when it is dropped").handle()
    }

    /// Runs a task, which continues when the caller is gone. `None` if the runtime was shut down.
    pub async fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        self.handle().spawn(work).await.ok()
    }

    /// Runs a request.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        self.spawn(work).await.unwrap_or_else(|| Err(closed()))
    }

    /// Like [`Self::run`], for a request that only reads: without a reply it had no effect.
    pub async fn run_read<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        self.run(work).await.map_err(faults::as_unsent)
    }
}

impl Drop for StoreRuntime {
    fn drop(&mut self) {
        // The last handle may be dropped on any thread, also on one that must not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The fault of a request that was sent and whose reply nothing waits for, because the store was closed.
pub fn closed() -> Fault {
    Fault::OutcomeUnknown("the store was closed".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::{Context, Waker};

    use cronhold_store::Pending;

    use super::*;

    #[test]
    fn request_continues_when_its_future_is_dropped() {
        let runtime = StoreRuntime::start("test").expect("a thread");
        let (sender, received) = mpsc::channel();
        let (go, wait) = tokio::sync::oneshot::channel();
        let mut request: Pending<'_, Result<(), Fault>> = Box::pin(runtime.run(async move {
            wait.await.expect("the sender is kept");
            sender.send(7).expect("the receiver is kept");
            Ok(())
        }));
        assert!(request.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(request);
        go.send(()).expect("the task waits");
        assert_eq!(received.recv(), Ok(7));
    }

    #[tokio::test]
    async fn read_without_a_reply_has_no_effect() {
        let runtime = StoreRuntime::start("test").expect("a thread");
        assert_eq!(runtime.run_read(async { Err::<(), _>(closed()) }).await, Err(faults::as_unsent(closed())));
        assert_eq!(runtime.run(async { Err::<(), _>(closed()) }).await, Err(closed()));
    }
}
