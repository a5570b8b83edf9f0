//! Where lines go: to a thread with a bounded queue, or straight to a file.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::format::{Line, LineFormat};
use cronhold_store::lock_mutex;

/// Lines that may wait to be written.
pub(super) const LINES_MAX: usize = 16 * 1024;
/// Bytes after which waiting lines are written together.
const WRITE_BYTES: usize = 32 * 1024;
/// How long [`LogWriter::close`] waits for the last lines.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A receiver of lines.
pub(super) trait WriteLine: Send + Sync + 'static {
    fn write_line(&self, line: Line);
}

/// Hands lines to a thread that writes them. Clones use the same thread.
#[derive(Debug, Clone)]
pub(super) struct LogWriter(Arc<WriterState>);

#[derive(Debug)]
struct WriterState {
    lines: Mutex<Option<SyncSender<Line>>>,
    /// Lines that did not fit into the queue since the last write.
    dropped: Arc<AtomicU64>,
    closed: Mutex<Receiver<()>>,
}

impl LogWriter {
    pub(super) fn start(format: LineFormat, to: impl Write + Send + 'static) -> Self {
        let (lines, queued) = sync_channel(LINES_MAX);
        let (ended, closed) = sync_channel(1);
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&dropped);
        thread::spawn(move || {
            write_lines(&queued, &counter, format, to);
            let _ = ended.send(());
        });
        Self(Arc::new(WriterState { lines: Mutex::new(Some(lines)), dropped, closed: Mutex::new(closed) }))
    }

    /// Waits until all lines are written, for a bounded time. Later lines are dropped.
    pub(super) fn close(&self) {
        drop(lock_mutex(&self.0.lines).take());
        let closed = lock_mutex(&self.0.closed);
        let _: Result<(), RecvTimeoutError> = closed.recv_timeout(CLOSE_TIMEOUT);
    }
}

impl WriteLine for LogWriter {
    fn write_line(&self, line: Line) {
        let lines = lock_mutex(&self.0.lines);
        if lines.as_ref().is_some_and(|lines| lines.try_send(line).is_err()) {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes lines until the sender is gone. Lines that cannot be written are lost: there is no other place to report it.
fn write_lines(queued: &Receiver<Line>, dropped: &AtomicU64, format: LineFormat, mut to: impl Write) {
    let mut bytes = Vec::new();
    while let Ok(first) = queued.recv() {
        bytes.clear();
        let mut next = Some(first);
        while let Some(line) = next {
            line.append_to(&mut bytes);
            if bytes.len() >= WRITE_BYTES {
                break;
            }
            next = queued.try_recv().ok();
        }
        let count = dropped.swap(0, Ordering::Relaxed);
        if count > 0 {
            format.dropped_lines(count).append_to(&mut bytes);
        }
        let _ = to.write_all(&bytes).and_then(|()| to.flush());
    }
}

/// Writes each line at once, on the thread that logs it.
pub(super) struct DirectWriter<W>(Mutex<W>);

impl<W: Write> DirectWriter<W> {
    pub(super) fn new(to: W) -> Self {
        Self(Mutex::new(to))
    }
}

impl<W: Write + Send + 'static> WriteLine for DirectWriter<W> {
    fn write_line(&self, line: Line) {
        let mut bytes = Vec::new();
        line.append_to(&mut bytes);
        let mut to = lock_mutex(&self.0);
        let _ = to.write_all(&bytes).and_then(|()| to.flush());
    }
}

impl<W> fmt::Debug for DirectWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectWriter")
    }
}
