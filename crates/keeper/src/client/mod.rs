//! The daemon's end of the line to its keeper: a thread of its own that connects, starts a keeper when there is none,
//! and carries messages both ways. It keeps no queue: it asks its [`Party`] for a message whenever there is room, and
//! what was asked for and not answered when the line broke is the party's to ask for again.

mod bell;
mod connect;
mod line;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub use bell::Bell;

use self::connect::Connector;
use self::line::Line;
use crate::fail;
use crate::protocol::{FromKeeper, ToKeeper};

/// First and longest wait before a keeper that could not be reached is tried again.
const AGAIN_MIN: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(2);
/// A line that has held so long was a good one: when it breaks, the next is tried at once.
const GOOD_LINE: Duration = Duration::from_secs(10);

/// What the client needs to know.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The daemon's own directory, as an absolute path.
    pub data: PathBuf,
    /// The program that is a keeper when it is called as `PROGRAM keeper --data DIR`.
    pub program: PathBuf,
    /// The daemon's version, for people.
    pub version: String,
    /// Further arguments with which a keeper is started, so that it logs as the daemon does.
    pub log_args: Vec<String>,
}

/// Who talks to the keeper. Its methods are called from the client's thread, one at a time, and must not wait long.
pub trait Party: Send + Sync {
    /// The next message, if there is one.
    fn next(&self) -> Option<ToKeeper>;

    /// Something has come.
    fn hear(&self, news: Heard);
}

/// What the party is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// There is a keeper. Its list comes next.
    Connected {
        /// Its version.
        version: String,
        /// Its process.
        pid: u32,
        /// What it cannot do here, in words.
        warnings: Vec<String>,
    },
    /// It said something.
    Said(FromKeeper),
    /// The line broke, or there is none; in words that go on after `the keeper`.
    Away(String),
}

/// The line to the keeper. Programs go on when it ends.
#[derive(Debug)]
pub struct Client {
    bell: Bell,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Client {
    /// Begins to look for a keeper. Whoever has a new message rings the bell.
    pub fn start(setup: Setup, bell: &Bell, party: Arc<dyn Party>) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let talk = Talk { connector: Connector::new(setup), bell: bell.clone(), is_over: Arc::clone(&is_over), party };
        let thread = std::thread::Builder::new().name("keeper client".to_owned()).spawn(move || talk.go_on())?;
        Ok(Self { bell: bell.clone(), is_over, thread: Some(thread) })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to say.
            let _ = thread.join();
        }
    }
}

/// The client's own side.
struct Talk {
    connector: Connector,
    bell: Bell,
    is_over: Arc<AtomicBool>,
    party: Arc<dyn Party>,
}

impl Talk {
    fn go_on(mut self) {
        let mut wait = AGAIN_MIN;
        while !self.is_over() {
            let before = bell::clock();
            let why = match self.connector.connect(&self.bell, &self.is_over) {
                Ok(line) => self.serve(line),
                Err(why) => why,
            };
            if self.is_over() {
                return;
            }
            self.party.hear(Heard::Away(why));
            wait = if bell::clock().saturating_sub(before) >= GOOD_LINE { AGAIN_MIN } else { wait };
            self.bell.rest(wait, &self.is_over);
            wait = (wait * 2).min(AGAIN_MAX);
        }
    }

    /// Carries messages until the line breaks, and says why it did.
    fn serve(&self, mut line: Line) -> String {
        let hello = match line.greeting() {
            Ok(hello) => hello,
            Err(why) => return why,
        };
        self.party.hear(hello);
        loop {
            if self.is_over() {
                return String::new();
            }
            let mut has_launch = false;
            while line.has_room()
                && let Some(message) = self.party.next()
            {
                has_launch |= matches!(message, ToKeeper::Launch(_));
                if let Err(error) = line.put(&message) {
                    return format!("was not told something: {error}");
                }
            }
            if let Err(why) = line.send() {
                return why;
            }
            if has_launch {
                fail::point("daemon-after-launch");
            }
            match line.receive(&self.bell) {
                Ok(said) => said.into_iter().for_each(|said| self.party.hear(Heard::Said(said))),
                Err(why) => return why,
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}
