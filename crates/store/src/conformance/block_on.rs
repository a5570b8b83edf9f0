//! A minimal executor: polls a future on this thread and parks in between. The suite needs no other; a store that needs
//! a runtime provides it.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Blocks this thread until a future completes.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::future::{poll_fn, ready};
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn waits_for_a_wake_from_another_thread() {
        assert_eq!(block_on(ready(7)), 7);
        let shared = Arc::new(Mutex::new((false, None::<Waker>)));
        let other = Arc::clone(&shared);
        let future = poll_fn(move |context| {
            let mut state = other.lock().expect("not poisoned");
            state.1 = Some(context.waker().clone());
            if state.0 { Poll::Ready(8) } else { Poll::Pending }
        });
        let waker = thread::spawn(move || {
            loop {
                let mut state = shared.lock().expect("not poisoned");
                if let Some(waker) = state.1.take() {
                    state.0 = true;
                    return waker.wake();
                }
                drop(state);
                thread::yield_now();
            }
        });
        assert_eq!(block_on(future), 8);
        waker.join().expect("it ends");
    }
}
