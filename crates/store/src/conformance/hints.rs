//! Cases about hints: a waiting handle receives the changes of others. Hints may be lost, so these cases retry, up to a
//! limit.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use cronhold_core::record::RecordKey;

use super::Subject;
use super::samples::{cursor, job_state};
use super::test_writer::TestWriter;
use crate::Store;

/// Number of changes after which at least one hint must have arrived.
const TRIES: u64 = 20_000;

/// Another handle receives a hint for a change.
pub fn other_handles_receive_hints(subject: &dyn Subject) {
    let (mut writer, other) = (TestWriter::of(subject), subject.store());
    for key in [job_state("a", 0).key(), cursor("a", "s", None).key()] {
        let heard = (0..TRIES).any(|number| {
            writer.put_all(&[job_state("a", number), cursor("a", "s", None)]);
            thread::yield_now();
            hear(&*other).contains(&key)
        });
        assert!(heard, "no hint for {key} after {TRIES} changes");
    }
}

/// A waiting handle is woken when there is a hint, and only needs to poll then.
pub fn waiting_handle_is_woken(subject: &dyn Subject) {
    let (mut writer, other) = (TestWriter::of(subject), subject.store());
    let bell = Arc::new(WakeFlag::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut context = Context::from_waker(&waker);
    let mut hints = other.hints();
    assert_eq!(hints.as_mut().poll(&mut context), Poll::Pending, "there are no changes");
    let heard = (0..TRIES).any(|number| {
        writer.put(&job_state("a", number));
        thread::yield_now();
        bell.0.swap(false, Ordering::SeqCst) && hints.as_mut().poll(&mut context).is_ready()
    });
    assert!(heard, "the waker was not called after {TRIES} changes");
}

/// A waker that records whether it was called.
#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The pending hints.
fn hear(store: &dyn Store) -> Vec<RecordKey> {
    match pin!(store.hints()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(hints) => hints.into_iter().map(|hint| hint.key).collect(),
        Poll::Pending => Vec::new(),
    }
}
