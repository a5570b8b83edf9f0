//! The log of the daemon: one line for each thing worth knowing, on standard error. A node must never wait for whoever
//! reads the log, so a thread of its own writes the lines, and what it cannot write in time is counted and left out.

mod line;
mod standing;

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use cronhold_cli::counted;
use cronhold_engine::queue::Queue;
use cronhold_engine::{Feed, News};

use crate::clock;
pub use line::{Line, Weight};
use standing::Standing;

/// Lines that may wait to be written.
const LINES_MAX: usize = 16 * 1024;
/// Bytes that are written at once, about.
const WRITE_BYTES: usize = 32 * 1024;
/// The last lines have so long to be written at the end.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// The log. Clones share it.
#[derive(Debug, Clone)]
pub struct Log(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    least: Weight,
    lines: Mutex<Option<SyncSender<Line>>>,
    /// Lines that could not wait any more.
    left_out: Arc<AtomicU64>,
    /// What was said of the store last.
    standing: Mutex<Standing>,
    /// Rings when the node has taken up everything that was stored.
    ready: Queue<()>,
    end: Mutex<Receiver<()>>,
}

impl Log {
    /// A log that writes lines of this weight and heavier ones.
    pub fn new(least: Weight, to: impl Write + Send + 'static) -> Self {
        let (lines, waiting) = sync_channel(LINES_MAX);
        let (ended, end) = sync_channel(1);
        let left_out = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&left_out);
        thread::spawn(move || {
            write_lines(&waiting, &counter, to);
            let _ = ended.send(());
        });
        let shared = Shared {
            least,
            lines: Mutex::new(Some(lines)),
            left_out,
            standing: Mutex::default(),
            ready: Queue::new(1),
            end: Mutex::new(end),
        };
        Self(Arc::new(shared))
    }

    /// Writes a line about the daemon itself.
    pub fn say(&self, weight: Weight, text: impl Into<String>) {
        self.put(Line::new(weight, clock::now(), text));
    }

    /// Something was committed that nobody is told of.
    pub(crate) fn commits(&self) {
        let words = self.standing().commits();
        words.into_iter().for_each(|words| self.say(Weight::Trouble, words));
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.0.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the node has taken up everything that was stored.
    pub async fn ready(&self) {
        self.0.ready.ready().await;
    }

    /// Waits until all lines are written, but not for ever. Nothing is written afterwards.
    pub fn end(&self) {
        drop(self.0.lines.lock().unwrap_or_else(PoisonError::into_inner).take());
        let end = self.0.end.lock().unwrap_or_else(PoisonError::into_inner);
        let _: Result<(), RecvTimeoutError> = end.recv_timeout(LAST_WAIT);
    }

    fn put(&self, line: Line) {
        if line.weight() < self.0.least {
            return;
        }
        let lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.as_ref().is_some_and(|lines| lines.try_send(line).is_err()) {
            self.0.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Feed for Log {
    fn tell(&self, news: &News<'_>) {
        let words = self.standing().hear(news);
        words.into_iter().for_each(|words| self.say(Weight::Trouble, words));
        if let News::Committed { stamp, done } = news {
            return line::of_commit(stamp, done, self.0.least).for_each(|line| self.put(line));
        }
        if let News::Ready { .. } = news {
            // It may be told again after a store was away.
            let _ = self.0.ready.offer(());
        }
        if let Some((weight, text)) = line::of_news(news) {
            self.say(weight, text);
        }
    }
}

/// Writes lines until nobody can send any more. When they cannot be written there is nobody to tell, so they are
/// dropped.
fn write_lines(waiting: &Receiver<Line>, left_out: &AtomicU64, mut to: impl Write) {
    let mut text = String::new();
    while let Ok(first) = waiting.recv() {
        text.clear();
        let mut next = Some(first);
        while let Some(line) = next {
            line.write(&mut text);
            if text.len() >= WRITE_BYTES {
                break;
            }
            next = waiting.try_recv().ok();
        }
        let count = left_out.swap(0, Ordering::Relaxed);
        if count > 0 {
            let lines = counted(usize::try_from(count).unwrap_or(usize::MAX), "line");
            let missing = format!("{lines} left out here: they came faster than they could be written");
            Line::new(Weight::Trouble, clock::now(), missing).write(&mut text);
        }
        let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what is written, and waits for permission before each write.
    struct Slow(Arc<Mutex<String>>, Receiver<()>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.1.recv();
            self.0.lock().expect("no panic").push_str(std::str::from_utf8(bytes).expect("UTF-8"));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_slow_reader() {
        let written = Arc::new(Mutex::new(String::new()));
        let (permit, permission) = sync_channel(0);
        let log = Log::new(Weight::Usual, Slow(Arc::clone(&written), permission));
        for number in 0..2 * LINES_MAX {
            log.say(Weight::Usual, format!("line {number}"));
            log.say(Weight::Detail, "of no interest");
        }
        drop(permit);
        log.end();
        let written = written.lock().expect("no panic");
        assert!(written.contains("line 0\n") && !written.contains("of no interest"));
        let lines = written.lines().filter(|line| line.contains(" line ")).count();
        let missing: usize = written
            .lines()
            .filter_map(|line| line.split_once(" lines left out here")?.0.rsplit(' ').next()?.parse::<usize>().ok())
            .sum();
        assert_eq!(lines + missing, 2 * LINES_MAX);
        assert!(missing > 0);
    }
}
