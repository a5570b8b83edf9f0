//! Cases about hints: whoever waits hears what others have changed. Hints may be lost, so these cases try again, but
//! not for ever.

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

/// So many changes are enough for one of them to be heard of.
const TRIES: u64 = 20_000;

/// Another handle hears of a change.
pub fn others_hear_of_changes(subject: &dyn Subject) {
    let (mut writer, other) = (TestWriter::of(subject), subject.store());
    for key in [job_state("a", 0).key(), cursor("a", "s", None).key()] {
        let heard = (0..TRIES).any(|number| {
            writer.put_all(&[job_state("a", number), cursor("a", "s", None)]);
            thread::yield_now();
            hear(&*other).contains(&key)
        });
        assert!(heard, "nothing was heard of {key} in {TRIES} changes");
    }
}

/// Someone who waits is woken when there is something to hear, and only has to look then.
pub fn who_waits_is_woken(subject: &dyn Subject) {
    let (mut writer, other) = (TestWriter::of(subject), subject.store());
    let bell = Arc::new(WakeFlag::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut context = Context::from_waker(&waker);
    let mut hints = other.hints();
    assert_eq!(hints.as_mut().poll(&mut context), Poll::Pending, "nobody has changed anything");
    let heard = (0..TRIES).any(|number| {
        writer.put(&job_state("a", number));
        thread::yield_now();
        bell.0.swap(false, Ordering::SeqCst) && hints.as_mut().poll(&mut context).is_ready()
    });
    assert!(heard, "nobody was woken by {TRIES} changes");
}

/// Whether it has rung.
#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// What there is to hear now.
fn hear(store: &dyn Store) -> Vec<RecordKey> {
    match pin!(store.hints()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(hints) => hints.into_iter().map(|hint| hint.key).collect(),
        Poll::Pending => Vec::new(),
    }
}
